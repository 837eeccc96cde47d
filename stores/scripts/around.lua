-- around: a player with the neighbours above and below.
--
-- KEYS     1 the board's ZSET
-- ARGV     1 how many each way, 2 ticks for shared ranks or '0' for unique ones, 3 player
-- RETURN   {size, index of the first entry, its shared rank or 0, {player, packed, ...}};
--          no entries where the player is not on the board
-- ATOMIC   All of it: a player who moves meanwhile can't be missing from the own neighbourhood. Writes nothing.

local size = redis.call('ZCARD', KEYS[1])
local rank = redis.call('ZREVRANK', KEYS[1], ARGV[3])
if not rank then
  return {size, 0, 0, {}}
end
local reach = tonumber(ARGV[1])
local index = math.max(rank - reach, 0)
local entries = redis.call('ZRANGE', KEYS[1], index, rank + reach, 'REV', 'WITHSCORES')
local ticks = tonumber(ARGV[2])
return {size, index, ticks > 0 and shared_rank(KEYS[1], entries[2], ticks) or 0, entries}
