-- add_partitions: tell the lane of partitions that the log is about to have.
--
-- KEYS     1 meta, 2 as_of
-- ARGV     1 epoch, 2 number of partitions from now on
-- RETURN   {'OK'} | {'FENCED'}: the lane was begun anew since it was looked at
-- REQUIRES this epoch. Fewer partitions than the lane knows change nothing.
-- ATOMIC   All of it: as_of is unknown from the same moment, until the new partitions were heard.

local found = redis.call('HMGET', KEYS[1], 'epoch', 'partitions')
if found[1] ~= ARGV[1] then
  return {'FENCED'}
end
if (tonumber(found[2] or '') or 0) < tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'partitions', ARGV[2])
  note_as_of(KEYS[1], KEYS[2], ARGV[2])
end
return {'OK'}
