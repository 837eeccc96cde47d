-- mend: all rows that the truth had after `tear` are merged: serve the board again.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4 the board's ZSET
-- ARGV     1 epoch, 2 board, 3 token
-- RETURN   {'OK'} | {'AGAIN'}: the key was deleted meanwhile, begin with tear | {'FENCED'}
-- REQUIRES READY, this epoch, and the member '' with the token. Else nothing is written.
-- ATOMIC   All of it.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
if redis.call('ZSCORE', KEYS[4], '') ~= ARGV[3] then
  return {'AGAIN'}
end
redis.call('ZREM', KEYS[4], '')
if redis.call('HDEL', KEYS[3], ARGV[2]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'torn', -1)
end
forget_if_empty(KEYS[1], KEYS[2], ARGV[2], KEYS[4])
return {'OK'}
