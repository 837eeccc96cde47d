-- Put before every script that reads a board. Defines, and does nothing by itself:
--
--   shared_rank(board, packed, ticks)   the competition rank of a packed value: 1 + how many have a better score.
--       `ticks` is 2^tick_bits of the board's codec: packed values of one score share packed div ticks.
--   exact(number)   a whole number below 2^53 with all its digits; tostring would lose some.

local function exact(number)
  return string.format('%.0f', number)
end

local function shared_rank(board, packed, ticks)
  local better = (math.floor(tonumber(packed) / ticks) + 1) * ticks
  return redis.call('ZCOUNT', board, exact(better), '+inf') + 1
end
