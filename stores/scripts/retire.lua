-- retire: remove a lane that the layout no longer has.
--
-- KEYS     1 meta, 2 applied, 3 as_of, 4 boards, 5 expelled, 6 torn, 7.. the ZSETs of the boards it names
-- ARGV     1 epoch seen, 2.. the names of the boards behind KEYS[7]..
-- RETURN   {'OK'} | {'FENCED'} | {'UNDECLARED', board, ...}: name them and call again
-- REQUIRES this epoch; every board that the lane names is among KEYS. Else nothing is written.
-- ATOMIC   All of it.

if (redis.call('HGET', KEYS[1], 'epoch') or '') ~= ARGV[1] then
  return {'FENCED'}
end
local undeclared = undeclared_boards(KEYS[4], 2)
if #undeclared > 1 then
  return undeclared
end
for key = 1, #KEYS do
  redis.call('UNLINK', KEYS[key])
end
return {'OK'}
