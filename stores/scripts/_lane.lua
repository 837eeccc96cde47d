-- Put before every script that changes a lane. Defines, and does nothing by itself:
--
--   is_ready(meta, applied, boards, torn, log, truth, topology)   how many partitions the lane knows of where it is
--       READY, carries these ids, and has kept the keys that a READY lane must have; else false: a lane without them
--       was tampered with and is LOST.
--   is_epoch(meta, epoch)   true where the lane is READY under this epoch.
--   tear(meta, torn, board, token)   note the board as torn, by whom: not served until it was mended.
--       Who mends or settles it knows by the token that nobody tore it anew meanwhile.
--   merge(meta, boards, torn, first_key, first_arg)   ZADD GT of entries, their EXPIREAT, and the boards' names.
--       From ARGV[first_arg] on, for KEYS[first_key], KEYS[first_key + 1], ...:
--       board, expires_at in epoch seconds or '', a JSON list of strings: packed, player, packed, player, ...
--       Entries are merged by maximum, so merging again changes nothing.
--       A board that the lane names and that has no key was deleted by hand: what is merged now is a part
--       of it only, so it is torn from here on, and not served until it was mended. So is one whose key
--       is no sorted set any more.
--   is_board(key)   true where the key is there and a sorted set.
--   end_tear(meta, torn, board)   the board is no longer torn.
--   forget_if_empty(meta, boards, board, key)   a board without entries has no key: the lane no longer names it.
--   undeclared_boards(boards, first_arg)   {'UNDECLARED', board, ...}: boards that the lane names and that are not
--       among ARGV[first_arg] and further.
--   note_as_of(meta, as_of, partitions)   meta.as_of := the minimum over so many partitions, '' while one was never
--       heard.
--
-- What somebody else wrote into a lane (another type, no number) makes it LOST, or counts as absent: a script that
-- failed on it would fail for ever.
--
-- Packed values stay strings: Lua's tostring loses digits near 2^53.
-- Lua's unpack fails near 8,000 values, so entries go to ZADD in chunks.
-- Entries come as one argument: 480 of them cost the client and the server more than the ZADD does (bench/projection.py).

local CHUNK = 4000

local function is_ready(meta, applied, boards, torn, log, truth, topology)
  local found = redis.call('HMGET', meta, 'state', 'log_id', 'truth_id', 'topology', 'boards', 'torn', 'partitions')
  local ready = found[1] == 'ready' and found[2] == log and found[3] == truth and found[4] == topology
    and tonumber(found[7] or '') ~= nil and redis.call('EXISTS', applied) == 1
    and redis.call('SCARD', boards) == tonumber(found[5] or '0')
    and redis.call('HLEN', torn) == tonumber(found[6] or '0')
  return ready and found[7]
end

local function is_epoch(meta, epoch)
  local found = redis.call('HMGET', meta, 'state', 'epoch')
  return found[1] == 'ready' and found[2] == epoch
end

local function tear(meta, torn, board, token)
  if redis.call('HSET', torn, board, token) == 1 then
    redis.call('HINCRBY', meta, 'torn', 1)
  end
end

local function end_tear(meta, torn, board)
  if redis.call('HDEL', torn, board) == 1 then
    redis.call('HINCRBY', meta, 'torn', -1)
  end
end

local function is_board(key)
  return redis.call('TYPE', key)['ok'] == 'zset'
end

local function merge(meta, boards, torn, first_key, first_arg)
  local arg = first_arg
  for key = first_key, #KEYS do
    local board, expires_at, entries = ARGV[arg], ARGV[arg + 1], cjson.decode(ARGV[arg + 2])
    local is_there = is_board(KEYS[key])
    if redis.call('SADD', boards, board) == 1 then
      redis.call('HINCRBY', meta, 'boards', 1)
    elseif not is_there then
      tear(meta, torn, board, '')
    end
    if not is_there then
      redis.call('UNLINK', KEYS[key])
    end
    for from = 1, #entries, CHUNK do
      redis.call('ZADD', KEYS[key], 'GT', unpack(entries, from, math.min(from + CHUNK - 1, #entries)))
    end
    if expires_at ~= '' then
      redis.call('EXPIREAT', KEYS[key], expires_at)
    end
    arg = arg + 3
  end
end

local function forget_if_empty(meta, boards, board, key)
  if redis.call('EXISTS', key) == 0 and redis.call('SREM', boards, board) == 1 then
    redis.call('HINCRBY', meta, 'boards', -1)
  end
end

local function undeclared_boards(boards, first_arg)
  local declared = {}
  for i = first_arg, #ARGV do
    declared[ARGV[i]] = true
  end
  local undeclared = {'UNDECLARED'}
  local named = redis.pcall('SMEMBERS', boards)
  for _, board in ipairs(named['err'] and {} or named) do
    if not declared[board] then
      undeclared[#undeclared + 1] = board
    end
  end
  return undeclared
end

local function note_as_of(meta, as_of, partitions)
  local heard = redis.call('HVALS', as_of)
  local least = ''
  if #heard >= (tonumber(partitions or '') or math.huge) then
    for _, at in ipairs(heard) do
      if not tonumber(at) then
        least = ''
        break
      elseif least == '' or tonumber(at) < tonumber(least) then
        least = at
      end
    end
  end
  redis.call('HSET', meta, 'as_of', least)
end
