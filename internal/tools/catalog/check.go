package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// ArgRepairer is a source that can put right what callers commonly get wrong in the
// arguments of its tools. It is asked only about arguments that do not fit, and
// what it returns has to.
type ArgRepairer interface {
	RepairArgs(ref tool.Ref, args json.RawMessage) (mended json.RawMessage, ok bool)
}

// checked holds the arguments against the tool's schema before the call is made.
// A definition that changed since we looked is looked at again before anybody is
// told that their arguments are wrong.
func (c *Catalog) checked(next handler) handler {
	return func(ctx context.Context, e *entry, call tool.Call) (tool.Result, error) {
		violations := c.schemas.of(e).check(call.Args)
		if len(violations) == 0 {
			return next(ctx, e, call)
		}
		if fresh := c.refresh(ctx).find(call.Ref); fresh != nil && fresh != e {
			if e = fresh; len(c.schemas.of(e).check(call.Args)) == 0 {
				return next(ctx, e, call)
			}
		}
		if mender, ok := e.source.(ArgRepairer); ok {
			if args, ok := mender.RepairArgs(call.Ref, call.Args); ok && len(c.schemas.of(e).check(args)) == 0 {
				call.Args = args
				return next(ctx, e, call)
			}
		}
		if args, ok := c.schemas.of(e).fixEmptyTables(call.Args); ok && len(c.schemas.of(e).check(args)) == 0 {
			call.Args = args
			return next(ctx, e, call)
		}
		return tool.Result{}, invalidArgs(&e.info, violations)
	}
}

// check lists what is wrong with args; nothing when they cannot be checked.
func (s *schema) check(args json.RawMessage) []Violation {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if first := bytes.TrimLeft(args, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return []Violation{{Expected: "object", Got: shown(args), Problem: "arguments must be an object"}}
	}
	if !s.needsFullCheck(args) {
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return []Violation{{Problem: "arguments are not valid JSON: " + err.Error()}}
	}
	if depth, parts := measure(value); !s.costs.affordable(s.compiled, depth, parts) {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if errors.As(s.validate(value), &invalid) {
		return violations(invalid, value, s.compiled)
	}
	return nil
}

// needsFullCheck tells whether args have to be looked at closely, and can be.
func (s *schema) needsFullCheck(args json.RawMessage) bool {
	return s.compiled != nil && len(args) <= longestArgs && tame(args) && !(json.Valid(args) && s.fast.fits(args))
}

// validate is the library's, which is not trusted to survive everything.
func (s *schema) validate(value any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("schema checker: %v", p)
		}
	}()
	return s.compiled.Validate(value)
}

// invalidArgs says what is wrong with the arguments, all of it at once, and what the
// tool takes.
func invalidArgs(info *tool.Info, violations []Violation) error {
	lines := make([]string, len(violations))
	for i, v := range violations {
		lines[i] = v.String()
	}
	return fault.New(fault.InvalidParams, "call %s: %s", info.Ref, strings.Join(lines, "; ")).
		WithHint("%s takes %s", info.Ref, Signature(info.Input)).
		WithDetails(map[string]any{"tool": info.Ref.String(), "violations": violations})
}
