// Package lua is a Lua 5.4 engine in pure Go that can be stopped, forked and
// saved.
//
// A [State] owns globals, libraries and budgets. It runs on one goroutine at a
// time; different states are independent and may run in parallel, sharing
// compiled code ([Proto]) and library tables.
//
//	s := lua.New(lua.Options{})
//	s.Open(lua.Sandboxed()...)
//	fn, err := s.Load("return 1 + ...", "=sum")
//	vals, err := s.Call(ctx, fn.Value(), lua.Int(41))
//
// The engine never recurses in Go for calls between Lua functions,
// metamethods, protected calls, iterators or coroutines: a suspended coroutine
// is plain data. Only host functions that call back into Lua nest, and their
// depth is limited.
package lua
