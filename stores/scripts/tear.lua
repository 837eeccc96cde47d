-- tear: begin to mend a board whose key was deleted by hand. From here on it is not served, until `mend`.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4 the board's ZSET
-- ARGV     1 epoch, 2 board, 3 expires_at in epoch seconds or ''
-- RETURN   {'TORN', token}: repair all its rows, then mend with this token
--          | {'WHOLE'}: its key is there and nothing tore it, or the lane doesn't name it | {'FENCED'}
-- REQUIRES READY, this epoch. Else nothing is written.
-- ATOMIC   All of it. The key begins anew with one member that no player can have, '', whose score is the
--          token: if the key is deleted once more, or by a second hand, that member is gone, and mend refuses.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
local named = redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1
local torn = redis.call('HEXISTS', KEYS[3], ARGV[2]) == 1
if not torn and (not named or redis.call('EXISTS', KEYS[4]) == 1) then
  return {'WHOLE'}
end
local token = string.format('%.0f', tear(KEYS[1], KEYS[3], ARGV[2]))
redis.call('UNLINK', KEYS[4])
redis.call('ZADD', KEYS[4], token, '')
if ARGV[3] ~= '' then
  redis.call('EXPIREAT', KEYS[4], ARGV[3])
end
return {'TORN', token}
