-- The Jovian planets: float arithmetic on fields.
local sqrt, PI = math.sqrt, math.pi
local SOLAR, DAYS = 4 * PI * PI, 365.24
local function body(x, y, z, vx, vy, vz, mass)
  return { x = x, y = y, z = z, vx = vx * DAYS, vy = vy * DAYS, vz = vz * DAYS, mass = mass * SOLAR }
end
local bodies = {
  body(0, 0, 0, 0, 0, 0, 1),
  body(4.84143144246472090, -1.16032004402742839, -1.03622044471123109e-01,
    1.66007664274403694e-03, 7.69901118419740425e-03, -6.90460016972063023e-05, 9.54791938424326609e-04),
  body(8.34336671824457987, 4.12479856412430479, -4.03523417114321381e-01,
    -2.76742510726411899e-03, 4.99852801234917238e-03, 2.30417297573763929e-05, 2.85885980666130812e-04),
  body(1.28943695621391310e+01, -1.51111514016986312e+01, -2.23307578892655734e-01,
    2.96460137564761618e-03, 2.37847173959480950e-03, -2.96589568540237556e-05, 4.36624404335156298e-05),
  body(1.53796971148509165e+01, -2.59193146099879641e+01, 1.79258772950371181e-01,
    2.68067772490389322e-03, 1.62824170038242295e-03, -9.51592254519715870e-05, 5.15138902046611451e-05),
}
local function advance(n, dt)
  for i = 1, n do
    local bi = bodies[i]
    local bix, biy, biz, bim = bi.x, bi.y, bi.z, bi.mass
    local vx, vy, vz = bi.vx, bi.vy, bi.vz
    for j = i + 1, n do
      local bj = bodies[j]
      local dx, dy, dz = bix - bj.x, biy - bj.y, biz - bj.z
      local d2 = dx * dx + dy * dy + dz * dz
      local mag = dt / (d2 * sqrt(d2))
      local bm = bj.mass * mag
      vx, vy, vz = vx - dx * bm, vy - dy * bm, vz - dz * bm
      bm = bim * mag
      bj.vx, bj.vy, bj.vz = bj.vx + dx * bm, bj.vy + dy * bm, bj.vz + dz * bm
    end
    bi.vx, bi.vy, bi.vz = vx, vy, vz
    bi.x, bi.y, bi.z = bix + dt * vx, biy + dt * vy, biz + dt * vz
  end
end
for _ = 1, 250000 do advance(#bodies, 0.01) end
local e = 0
for i, b in ipairs(bodies) do e = e + 0.5 * b.mass * (b.vx ^ 2 + b.vy ^ 2 + b.vz ^ 2) end
print(string.format("%.9f", e))
