// A module of its own, so that the engine it compares with is no dependency of
// the program.
module github.com/luanette/luanette/bench/lua

go 1.26.0

require (
	github.com/luanette/luanette v0.0.0
	github.com/yuin/gopher-lua v1.1.2
)

replace github.com/luanette/luanette => ../..
