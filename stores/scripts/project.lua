-- project: bring whole ranges of the log, with all the row images that they touch, into the lane.
--
-- KEYS     1 meta, 2 applied, 3 as_of, 4 boards, 5 torn, 6.. one ZSET per board
-- ARGV     1 log id, 2 truth id, 3 topology, 4 how many partitions the log had when the times were taken, or 0,
--          5 number of ranges,
--          per range: partition, first offset, next offset, as_of in ms or '' where nothing is known,
--          then the entries of each board (see merge)
-- RETURN   {'APPLIED'} | {'LOST'}: the lane is not ready under these ids
--          | {'BEHIND', partition, applied, ...}: these partitions have a gap before their range
-- REQUIRES READY with these ids; for every range applied[partition] >= first offset. Else nothing is written.
-- ATOMIC   All of it. Entries first, applied next, so that a script that dies half way leaves no gap.

if not is_ready(KEYS[1], KEYS[2], KEYS[4], KEYS[5], ARGV[1], ARGV[2], ARGV[3]) then
  return {'LOST'}
end
local count = tonumber(ARGV[5])
local behind = {'BEHIND'}
local applied = {}
for i = 0, count - 1 do
  local partition, first = ARGV[6 + 4 * i], ARGV[7 + 4 * i]
  -- A partition that the lane has not met is at 0, never at the range's start.
  local at = redis.call('HGET', KEYS[2], partition) or '0'
  applied[i] = at
  if tonumber(at) < tonumber(first) then
    behind[#behind + 1] = partition
    behind[#behind + 1] = at
  end
end
if #behind > 1 then
  return behind
end

merge(KEYS[1], KEYS[4], KEYS[5], 6, 6 + 4 * count)
for i = 0, count - 1 do
  local partition, next_offset, as_of = ARGV[6 + 4 * i], ARGV[8 + 4 * i], ARGV[9 + 4 * i]
  if tonumber(applied[i]) < tonumber(next_offset) then
    redis.call('HSET', KEYS[2], partition, next_offset)
  elseif applied[i] == '0' then
    redis.call('HSETNX', KEYS[2], partition, '0')
  end
  if as_of ~= '' and tonumber(redis.call('HGET', KEYS[3], partition) or '-1') < tonumber(as_of) then
    redis.call('HSET', KEYS[3], partition, as_of)
  end
end
-- A lane that was rolled back to before the log grew must not take its few partitions for all.
if tonumber(redis.call('HGET', KEYS[1], 'partitions')) < tonumber(ARGV[4]) then
  redis.call('HSET', KEYS[1], 'partitions', ARGV[4])
end
note_as_of(KEYS[1], KEYS[3])
return {'APPLIED'}
