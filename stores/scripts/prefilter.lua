-- prefilter: what the lane's boards hold for these players, if the lane can be believed.
--
-- KEYS     1 meta, 2 applied, 3 boards, 4 torn, 5.. one ZSET per board
-- ARGV     1 log id, 2 truth id, 3 topology, then per board: count, then count times player
-- RETURN   {'LOST'}: the lane is not ready under these ids, and nothing in it counts
--          | {'READY', packed or nil, ...}: one for each player of each board, in the order asked
-- ATOMIC   All of it: ids and scores are of one moment. Writes nothing.

if not is_ready(KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2], ARGV[3]) then
  return {'LOST'}
end
local answer = {'READY'}
local arg = 4
for key = 5, #KEYS do
  local last = arg + tonumber(ARGV[arg])
  for from = arg + 1, last, CHUNK do
    for _, packed in ipairs(redis.call('ZMSCORE', KEYS[key], unpack(ARGV, from, math.min(from + CHUNK - 1, last)))) do
      -- A nil inside a reply would end it: absent players are ''.
      answer[#answer + 1] = packed or ''
    end
  end
  arg = last + 1
end
return answer
