-- mend: all rows that the truth had after `tear` are merged: serve the board again.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4 the board's ZSET
-- ARGV     1 epoch, 2 board, 3 token, 4 number of refill steps
-- RETURN   {'OK'} | {'AGAIN'}: it was torn anew, or a step is missing: begin with tear | {'FENCED'}
-- REQUIRES READY, this epoch, torn by this token, the member '' at the number of steps. Else nothing is written.
-- ATOMIC   All of it.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
if redis.call('HGET', KEYS[3], ARGV[2]) ~= ARGV[3] or redis.call('ZSCORE', KEYS[4], '') ~= ARGV[4] then
  return {'AGAIN'}
end
redis.call('ZREM', KEYS[4], '')
end_tear(KEYS[1], KEYS[3], ARGV[2])
forget_if_empty(KEYS[1], KEYS[2], ARGV[2], KEYS[4])
return {'OK'}
