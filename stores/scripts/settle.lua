-- settle: merge the row as it was read after an expel, drop the note, and serve the board again.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4 expelled, 5 the board's ZSET (only where there is a row)
-- ARGV     1 epoch, 2 board, 3 player, 4 the token of the expel, or '' for whoever found the note: the board is then
--          left torn, for mend; then the entry as merge takes it (only where there is a row)
-- RETURN   {'OK'} | {'FENCED'}
-- REQUIRES READY, this epoch. Else nothing is written.
-- ATOMIC   All of it.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
merge(KEYS[1], KEYS[2], KEYS[3], 5, 5)
redis.call('SREM', KEYS[4], ARGV[2] .. '\n' .. ARGV[3])
if ARGV[4] ~= '' and redis.call('HGET', KEYS[3], ARGV[2]) == ARGV[4] then
  end_tear(KEYS[1], KEYS[3], ARGV[2])
end
return {'OK'}
