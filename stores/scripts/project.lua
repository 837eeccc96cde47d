-- project: bring whole ranges of the log, with all the row images that they touch, into the lane.
--
-- KEYS     1 meta, 2 applied, 3 as_of, 4 boards, 5 torn, 6.. one ZSET per board
-- ARGV     1 log id, 2 truth id, 3 topology, 4 how many partitions the log had when the times were taken, or 0,
--          5 number of ranges, at least one,
--          per range: partition, first offset, next offset, as_of in ms or '' where nothing is known,
--          then the entries of each board (see merge)
-- RETURN   {'APPLIED'} | {'LOST'}: the lane is not ready under these ids
--          | {'BEHIND', partition, applied, ...}: these partitions have a gap before their range
-- REQUIRES READY with these ids; for every range applied[partition] >= first offset. Else nothing is written.
-- ATOMIC   All of it. Entries first, applied next, so that a script that dies half way leaves no gap.

local known = is_ready(KEYS[1], KEYS[2], KEYS[4], KEYS[5], ARGV[1], ARGV[2], ARGV[3])
if not known then
  return {'LOST'}
end
local ranges = tonumber(ARGV[5])
local partitions = {}
for i = 1, ranges do
  partitions[i] = ARGV[2 + 4 * i]
end
local applied = redis.call('HMGET', KEYS[2], unpack(partitions))
local behind = {'BEHIND'}
for i = 1, ranges do
  -- A partition that the lane has not met is at 0, never at the range's start.
  local at = tonumber(applied[i] or '') and applied[i] or '0'
  if tonumber(at) < tonumber(ARGV[3 + 4 * i]) then
    behind[#behind + 1] = partitions[i]
    behind[#behind + 1] = at
  end
end
if #behind > 1 then
  return behind
end

merge(KEYS[1], KEYS[4], KEYS[5], 6, 6 + 4 * ranges)
local heard = redis.call('HMGET', KEYS[3], unpack(partitions))
local offsets, times = {}, {}
for i = 1, ranges do
  local next_offset, as_of = ARGV[4 + 4 * i], ARGV[5 + 4 * i]
  if (tonumber(applied[i] or '') or -1) < tonumber(next_offset) then
    offsets[#offsets + 1] = partitions[i]
    offsets[#offsets + 1] = next_offset
  end
  if as_of ~= '' and (tonumber(heard[i] or '') or -1) < tonumber(as_of) then
    times[#times + 1] = partitions[i]
    times[#times + 1] = as_of
  end
end
if #offsets > 0 then
  redis.call('HSET', KEYS[2], unpack(offsets))
end
if #times > 0 then
  redis.call('HSET', KEYS[3], unpack(times))
end
-- A lane that was rolled back to before the log grew must not take its few partitions for all.
if tonumber(known) < tonumber(ARGV[4]) then
  known = ARGV[4]
  redis.call('HSET', KEYS[1], 'partitions', known)
end
note_as_of(KEYS[1], KEYS[3], known)
return {'APPLIED'}
