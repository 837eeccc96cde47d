-- tear: begin to mend a board whose key was deleted by hand. From here on it is not served, until `mend`.
--
-- KEYS     1 meta, 2 boards, 3 torn, 4 the board's ZSET
-- ARGV     1 epoch, 2 board, 3 a fresh token, never used before and never derived from Redis,
--          4 expires_at in epoch seconds or ''
-- RETURN   {'TORN'}: refill all its rows, then mend, with this token
--          | {'WHOLE'}: its key is there and nothing tore it, or the lane doesn't name it | {'FENCED'}
-- REQUIRES READY, this epoch. Else nothing is written.
-- ATOMIC   All of it. The key begins anew with one member that no player can have, '', whose score counts the
--          steps: if the key is deleted once more that member is gone, and if the lane is rolled back to where a
--          step was not yet done the count shows it. Either way refill and mend refuse.

if not is_epoch(KEYS[1], ARGV[1]) then
  return {'FENCED'}
end
local named = redis.call('SISMEMBER', KEYS[2], ARGV[2]) == 1
local torn = redis.call('HEXISTS', KEYS[3], ARGV[2]) == 1
if not torn and (not named or is_board(KEYS[4])) then
  return {'WHOLE'}
end
tear(KEYS[1], KEYS[3], ARGV[2], ARGV[3])
redis.call('UNLINK', KEYS[4])
redis.call('ZADD', KEYS[4], '0', '')
if ARGV[4] ~= '' then
  redis.call('EXPIREAT', KEYS[4], ARGV[4])
end
return {'TORN'}
