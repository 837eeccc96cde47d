-- expel: take out, or lower to the truth's row, an entry that the truth does not back.
--
-- KEYS     1 meta, 2 boards, 3 expelled, 4 torn, 5 the board's ZSET
-- ARGV     1 epoch, 2 board, 3 player, 4 packed as seen, 5 packed of the truth's row or '' for none, 6 a fresh token
-- RETURN   {'OK'}: settle with this token
--          | {'CHANGED'}: the entry is no longer what was seen, or the board is torn | {'FENCED'}
-- REQUIRES READY, this epoch, the score still as seen, the board not torn. Else nothing is written.
-- ATOMIC   All of it. A result may have come in since the row was read that the higher foreign entry hid: until
--          the row was read once more and settled the board is torn, and so not served. Whoever finds the note
--          after a crash settles it, and mends the board.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
if redis.call('ZSCORE', KEYS[5], ARGV[3]) ~= ARGV[4] or redis.call('HEXISTS', KEYS[4], ARGV[2]) == 1 then
  return {'CHANGED'}
end
tear(KEYS[1], KEYS[4], ARGV[2], ARGV[6])
-- Neither a board's name nor a player's id has a line break.
redis.call('SADD', KEYS[3], ARGV[2] .. '\n' .. ARGV[3])
if ARGV[5] == '' then
  redis.call('ZREM', KEYS[5], ARGV[3])
  forget_if_empty(KEYS[1], KEYS[2], ARGV[2], KEYS[5])
else
  redis.call('ZADD', KEYS[5], 'XX', ARGV[5], ARGV[3])
end
return {'OK'}
