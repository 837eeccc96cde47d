-- fill: the i-th step of a rebuild: merge a chunk of row images that the truth has.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4.. one ZSET per board
-- ARGV     1 epoch, 2 i, 3 progress (rows filled with this chunk), then the entries of each board (see merge)
-- RETURN   {'OK'} | {'FENCED'}: the rebuild is no longer this runner's, or a step is missing
-- REQUIRES rebuilding, this epoch, seq = i (the next step) or i + 1 (this very step once more). Else nothing is written.
-- ATOMIC   All of it; a repeated step changes nothing.

local found = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'seq')
local step = tonumber(ARGV[2])
if found[1] ~= 'rebuilding' or found[2] ~= ARGV[1] or (tonumber(found[3]) ~= step and tonumber(found[3]) ~= step + 1) then
  return {'FENCED'}
end
merge(KEYS[1], KEYS[2], KEYS[3], 4, 4)
redis.call('HSET', KEYS[1], 'seq', string.format('%.0f', step + 1), 'progress', ARGV[3])
return {'OK'}
