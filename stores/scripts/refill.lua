-- refill: the i-th step of mending a torn board: merge a chunk of row images that the truth has.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4 the board's ZSET
-- ARGV     1 epoch, 2 board, 3 token, 4 i, then the board's entries (see merge)
-- RETURN   {'OK'} | {'AGAIN'}: it was torn anew, or a step is missing: begin with tear | {'FENCED'}
-- REQUIRES READY, this epoch, torn by this token, the member '' at i (the next step) or i + 1 (this very step once
--          more). Else nothing is written.
-- ATOMIC   All of it; a repeated step changes nothing.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
local step = tonumber(ARGV[4])
local at = redis.call('ZSCORE', KEYS[4], '')
if redis.call('HGET', KEYS[3], ARGV[2]) ~= ARGV[3] or not at or (tonumber(at) ~= step and tonumber(at) ~= step + 1) then
  return {'AGAIN'}
end
merge(KEYS[1], KEYS[2], KEYS[3], 4, 5)
redis.call('ZADD', KEYS[4], 'XX', string.format('%.0f', step + 1), '')
return {'OK'}
