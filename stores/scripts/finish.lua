-- finish: the rebuilt lane is whole up to the offsets S, which were read before the first row was.
--
-- KEYS     1 meta, 2 applied, 3 as_of
-- ARGV     1 epoch, 2 number of fill steps, then per partition: partition, offset, as_of in ms or ''
-- RETURN   {'OK'} | {'FENCED'}
-- REQUIRES rebuilding, this epoch, seq = number of steps; or already (ready, this epoch), and then nothing is written.
-- ATOMIC   All of it. applied is set, not raised; the state comes last.

local found = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'seq', 'partitions')
if found[1] == 'ready' and found[2] == ARGV[1] then
  return {'OK'}
end
if found[1] ~= 'rebuilding' or found[2] ~= ARGV[1] or found[3] ~= ARGV[2] then
  return {'FENCED'}
end
redis.call('UNLINK', KEYS[2], KEYS[3])
for arg = 3, #ARGV, 3 do
  redis.call('HSET', KEYS[2], ARGV[arg], ARGV[arg + 1])
  if ARGV[arg + 2] ~= '' then
    redis.call('HSET', KEYS[3], ARGV[arg], ARGV[arg + 2])
  end
end
note_as_of(KEYS[1], KEYS[3], found[4])
redis.call('HSET', KEYS[1], 'state', 'ready')
return {'OK'}
