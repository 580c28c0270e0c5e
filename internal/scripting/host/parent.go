package host

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"sync/atomic"

	"github.com/luanette/luanette/internal/core/tool"
)

// Parent is the run that called the one about to start: a script that calls another
// script as a tool. The effects of the nested run pass the parent's Handler.
type Parent struct {
	Handler Handler
	seq     int64 // of the effect that called
	tool    tool.Ref
	line    int
	job     string // the job that the run is part of; "" if it is none
	runs    atomic.Int64
}

type parentKey struct{}

func (e *Env) withParent(ctx context.Context, effect Effect) context.Context {
	ref, _ := effect.Tool()
	return context.WithValue(ctx, parentKey{}, &Parent{Handler: e.handler, seq: effect.Seq, tool: ref, line: effect.Line, job: e.job})
}

// Tool returns the tool that the parent's script called, which may be one of ours that
// calls others.
func (o *Parent) Tool() tool.Ref { return o.tool }

// Line returns the line of that call; 0 if unknown.
func (o *Parent) Line() int { return o.line }

// ParentOf returns the run that ctx belongs to, or nil if no script made the call.
func ParentOf(ctx context.Context) *Parent {
	parent, _ := ctx.Value(parentKey{}).(*Parent)
	return parent
}

// nestedFlag marks the numbers of effects of nested runs. They stay below 2^53, so that
// every JSON reader can hold them.
const nestedFlag = 1 << 52

// numbering numbers the effects of a run: 1, 2, 3 … For a nested run, the numbers are
// derived from the parent's effect, so that they are unique and stay the same when the
// parent runs again.
type numbering struct {
	parent, run int64
	count       atomic.Int64
}

func (n *numbering) next() int64 {
	number := n.count.Add(1)
	if n.run == 0 {
		return number
	}
	var key [24]byte
	binary.BigEndian.PutUint64(key[:], uint64(n.parent)) //nolint:gosec // bits, not a quantity
	binary.BigEndian.PutUint64(key[8:], uint64(n.run))   //nolint:gosec // likewise
	binary.BigEndian.PutUint64(key[16:], uint64(number)) //nolint:gosec // likewise
	sum := fnv.New64a()
	_, _ = sum.Write(key[:])
	return nestedFlag | int64(sum.Sum64()&(nestedFlag-1)) //nolint:gosec // 52 bits
}

// Nested reports whether the step was made by a nested run.
func (s Step) Nested() bool { return s.Seq&nestedFlag != 0 }
