-- settle: merge the row as it was read after an expel, and drop the note.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4 expelled, 5 the board's ZSET (only where there is a row)
-- ARGV     1 epoch, 2 board, 3 player, then the entry as merge takes it (only where there is a row)
-- RETURN   {'OK'} | {'FENCED'}
-- REQUIRES READY, this epoch. Else nothing is written.
-- ATOMIC   All of it.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
merge(KEYS[1], KEYS[2], KEYS[3], 5, 4)
redis.call('SREM', KEYS[4], ARGV[2] .. '\n' .. ARGV[3])
return {'OK'}
