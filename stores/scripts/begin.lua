-- begin: empty the lane and open it for a rebuild under a new epoch.
--
-- KEYS     1 meta, 2 applied, 3 as_of, 4 boards, 5 expelled, 6 torn, 7.. the ZSETs of all boards that may be there
-- ARGV     1 epoch, 2 log id, 3 truth id, 4 topology, 5 partitions, 6 state seen ('' for none), 7 epoch seen,
--          8.. the names of the boards behind KEYS[7]..
-- RETURN   {'OK'} | {'FENCED'}: another runner was here since the lane was looked at
--          | {'UNDECLARED', board, ...}: the lane has boards that are not among KEYS; name them and call again
-- REQUIRES (state, epoch) as seen, or already (rebuilding, this epoch). Else nothing is written.
-- EFFECT   Empties the lane. Of the partitions given and those that it knew of the same log the greater number stays.
-- ATOMIC   All of it: no reader sees the lane half emptied.

local found = redis.pcall('HMGET', KEYS[1], 'state', 'epoch', 'log_id', 'partitions')
local state, epoch = found[1] or '', found[2] or ''
if not (state == ARGV[6] and epoch == ARGV[7]) and not (state == 'rebuilding' and epoch == ARGV[1]) then
  return {'FENCED'}
end
local undeclared = undeclared_boards(KEYS[4], 8)
if #undeclared > 1 then
  return undeclared
end
-- The lane may have been told of partitions that the log is about to have.
local partitions = ARGV[5]
if found[3] == ARGV[2] and (tonumber(found[4] or '') or 0) > tonumber(partitions) then
  partitions = found[4]
end
for key = 1, #KEYS do
  redis.call('UNLINK', KEYS[key])
end
redis.call('HSET', KEYS[1], 'state', 'rebuilding', 'epoch', ARGV[1], 'log_id', ARGV[2], 'truth_id', ARGV[3],
  'topology', ARGV[4], 'partitions', partitions, 'seq', '0', 'boards', '0', 'torn', '0', 'as_of', '', 'progress', '0')
return {'OK'}
