package host

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"sync/atomic"

	"github.com/luanette/luanette/internal/core/tool"
)

// Parent is the run that asked for the one about to start: a script that calls
// another one as a tool. What the inner script does is a part of what the outer
// one does, and passes the same door.
type Parent struct {
	Handler Handler
	seq     int64 // of the effect that asked
	tool    tool.Ref
	line    int
	runs    atomic.Int64
}

type parentKey struct{}

func withParent(ctx context.Context, handler Handler, e Effect) context.Context {
	ref, _ := e.Tool()
	return context.WithValue(ctx, parentKey{}, &Parent{Handler: handler, seq: e.Seq, tool: ref, line: e.Line})
}

// Tool is the tool the script calls, which may be one of ours that calls others.
func (o *Parent) Tool() tool.Ref { return o.tool }

// OutputLine is where in the script it does; 0 when that is not known.
func (o *Parent) Line() int { return o.line }

// ParentOf is the run that ctx belongs to, or nil when no script asked.
func ParentOf(ctx context.Context) *Parent {
	parent, _ := ctx.Value(parentKey{}).(*Parent)
	return parent
}

// nestedFlag marks the numbers of effects of inner runs. They stay below 2^53,
// so that every reader of JSON can hold them.
const nestedFlag = 1 << 52

// numbering gives the effects of a run their numbers: 1, 2, 3 …, or for an inner
// run such that are the same whenever the outer one asks the same again, and are
// nobody else's.
type numbering struct {
	parent, run int64
	asked       atomic.Int64
}

func (n *numbering) next() int64 {
	number := n.asked.Add(1)
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

// Nested tells that the step was made by a script that the run's own script
// called.
func (s Step) Nested() bool { return s.Seq&nestedFlag != 0 }
