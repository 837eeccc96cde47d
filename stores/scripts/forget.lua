-- forget: a board's time is over and its key is gone: the lane no longer names it.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4 the board's ZSET
-- ARGV     1 epoch, 2 board
-- RETURN   {'OK'} | {'THERE'}: it still has a key | {'FENCED'}
-- REQUIRES READY, this epoch, no key. Else nothing is written.
-- ATOMIC   All of it.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
if redis.call('EXISTS', KEYS[4]) == 1 then
  return {'THERE'}
end
forget_if_empty(KEYS[1], KEYS[2], ARGV[2], KEYS[4])
end_tear(KEYS[1], KEYS[3], ARGV[2])
return {'OK'}
