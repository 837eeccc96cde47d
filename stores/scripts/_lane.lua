-- Put before every script that changes a lane. Defines, and does nothing by itself:
--
--   is_ready(meta, applied, boards, log, truth, topology)   true where the lane is READY, carries these ids,
--       and has kept the keys that a READY lane must have: a lane without them was tampered with and is LOST.
--   merge(meta, boards, first_key, first_arg)   ZADD GT of entries, their EXPIREAT, and the boards' names.
--       From ARGV[first_arg] on, for KEYS[first_key], KEYS[first_key + 1], ...:
--       board, expires_at in epoch seconds or '', count, then count times packed, player.
--       Entries are merged by maximum, so merging again changes nothing.
--   note_as_of(meta, as_of)   meta.as_of := the minimum over all partitions, '' while one was never heard.
--
-- Packed values stay strings: Lua's tostring loses digits near 2^53.
-- Lua's unpack fails near 8,000 values, so entries go to ZADD in chunks.

local CHUNK = 4000

local function is_ready(meta, applied, boards, log, truth, topology)
  local found = redis.call('HMGET', meta, 'state', 'log_id', 'truth_id', 'topology', 'boards')
  return found[1] == 'ready' and found[2] == log and found[3] == truth and found[4] == topology
    and redis.call('EXISTS', applied) == 1
    and redis.call('SCARD', boards) == tonumber(found[5] or '0')
end

local function merge(meta, boards, first_key, first_arg)
  local arg = first_arg
  for key = first_key, #KEYS do
    local board, expires_at, count = ARGV[arg], ARGV[arg + 1], tonumber(ARGV[arg + 2])
    local last = arg + 2 + 2 * count
    for from = arg + 3, last, CHUNK do
      redis.call('ZADD', KEYS[key], 'GT', unpack(ARGV, from, math.min(from + CHUNK - 1, last)))
    end
    if expires_at ~= '' then
      redis.call('EXPIREAT', KEYS[key], expires_at)
    end
    if redis.call('SADD', boards, board) == 1 then
      redis.call('HINCRBY', meta, 'boards', 1)
    end
    arg = last + 1
  end
end

local function note_as_of(meta, as_of)
  local partitions = tonumber(redis.call('HGET', meta, 'partitions'))
  local heard = redis.call('HVALS', as_of)
  local least = ''
  if #heard >= partitions then
    for _, at in ipairs(heard) do
      if least == '' or tonumber(at) < tonumber(least) then
        least = at
      end
    end
  end
  redis.call('HSET', meta, 'as_of', least)
end
