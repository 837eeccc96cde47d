-- repair: merge row images that the truth has into a READY lane. A row's image is always safe to merge.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4.. one ZSET per board
-- ARGV     1 epoch, then the entries of each board (see merge)
-- RETURN   {'OK'} | {'FENCED'}: the lane is no longer READY under this epoch
-- REQUIRES READY, this epoch. Else nothing is written.
-- ATOMIC   All of it.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
merge(KEYS[1], KEYS[2], KEYS[3], 4, 2)
return {'OK'}
