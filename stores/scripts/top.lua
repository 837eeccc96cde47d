-- top: one page of a board, best first, from an index or from behind a cursor.
--
-- KEYS     1 the board's ZSET
-- ARGV     1 how many, 2 ticks for shared ranks or '0' for unique ones,
--          3 index of the first entry; or '' and then 4 packed, 5 player: the entry that the page begins behind
-- RETURN   {size, index of the first entry, its shared rank or 0, {player, packed, ...}}
-- ATOMIC   All of it: size, ranks and entries are of one moment. Writes nothing.
-- COST     O(log N + how many); behind a cursor O(log² N) more, whatever the number of equal values.

-- Equal packed values stand in descending order of the players' bytes. Lua's own < would use the locale.
local function is_below(left, right)
  for i = 1, math.min(#left, #right) do
    local a, b = string.byte(left, i), string.byte(right, i)
    if a ~= b then
      return a < b
    end
  end
  return #left < #right
end

local function index_behind(board, packed, player)
  local low = redis.call('ZCOUNT', board, '(' .. packed, '+inf')
  local high = redis.call('ZCOUNT', board, packed, '+inf')
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = redis.call('ZRANGE', board, middle, middle, 'REV')
    if is_below(found[1], player) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local size = redis.call('ZCARD', KEYS[1])
local index = ARGV[3] == '' and index_behind(KEYS[1], ARGV[4], ARGV[5]) or tonumber(ARGV[3])
if index >= size then
  return {size, index, 0, {}}
end
local entries = redis.call('ZRANGE', KEYS[1], exact(index), exact(index + tonumber(ARGV[1]) - 1), 'REV', 'WITHSCORES')
local ticks = tonumber(ARGV[2])
return {size, index, ticks > 0 and shared_rank(KEYS[1], entries[2], ticks) or 0, entries}
