-- places: rank and packed value of each of these players.
--
-- KEYS     1 the board's ZSET
-- ARGV     1 ticks for shared ranks or '0' for unique ones, 2.. players
-- RETURN   {size, rank, packed, rank, packed, ...}: rank is 1-based, 0 where the player is not on the board
-- ATOMIC   All of it: the places are of one moment. Writes nothing.

local ticks = tonumber(ARGV[1])
local answer = {redis.call('ZCARD', KEYS[1])}
for i = 2, #ARGV do
  local packed = redis.call('ZSCORE', KEYS[1], ARGV[i])
  if not packed then
    answer[#answer + 1] = 0
    answer[#answer + 1] = ''
  else
    answer[#answer + 1] = ticks > 0 and shared_rank(KEYS[1], packed, ticks) or redis.call('ZREVRANK', KEYS[1], ARGV[i]) + 1
    answer[#answer + 1] = packed
  end
end
return answer
