-- expel: take out, or lower to the truth's row, an entry that the truth does not back.
--
-- KEYS     1 meta, 2 boards, 3 expelled, 4 the board's ZSET
-- ARGV     1 epoch, 2 board, 3 player, 4 packed as seen, 5 packed of the truth's row or '' for none
-- RETURN   {'OK'} | {'CHANGED'}: the entry is no longer what was seen | {'FENCED'}
-- REQUIRES READY, this epoch, the score still as seen. Else nothing is written.
-- ATOMIC   All of it. The note comes first: whoever finds it reads the row once more and settles it, so that a
--          result which came in between is not lost.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
if redis.call('ZSCORE', KEYS[4], ARGV[3]) ~= ARGV[4] then
  return {'CHANGED'}
end
-- Neither a board's name nor a player's id has a line break.
redis.call('SADD', KEYS[3], ARGV[2] .. '\n' .. ARGV[3])
if ARGV[5] == '' then
  redis.call('ZREM', KEYS[4], ARGV[3])
  forget_if_empty(KEYS[1], KEYS[2], ARGV[2], KEYS[4])
else
  redis.call('ZADD', KEYS[4], 'XX', ARGV[5], ARGV[3])
end
return {'OK'}
