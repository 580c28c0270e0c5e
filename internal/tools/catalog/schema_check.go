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
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// ArgRepairer is a source that can correct what callers commonly get wrong in the
// arguments of its tools. It is asked only about arguments that do not match the
// schema; those it returns must match.
type ArgRepairer interface {
	RepairArgs(ref tool.Ref, args json.RawMessage) (repaired json.RawMessage, ok bool)
}

// CheckArguments checks the arguments against the tool's schema. Those of a relayed
// request for a tool that is not listed are left to the upstream.
func CheckArguments() tool.Step {
	return tool.Step{Name: "arguments", ChecksOnly: true, Before: checkArguments}
}

func checkArguments(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	r := i.State.(*run)
	schemas, e := r.catalog.schemas, r.entry
	if i.Relayed {
		e = r.catalog.callersEntry(ctx, r.catalog.view.Load().find(i.Info.Ref))
	}
	if e == nil {
		return ctx, nil
	}
	violations := schemas.of(e).check(i.Call.Args)
	if len(violations) == 0 {
		return ctx, nil
	}
	// The definition may have changed since the sources were read.
	if fresh := r.catalog.callersEntry(ctx, r.catalog.refresh(ctx).find(i.Info.Ref)); fresh != nil && fresh != e {
		if e = fresh; !i.Relayed {
			r.entry, i.Info = fresh, &fresh.info
		}
		if len(schemas.of(fresh).check(i.Call.Args)) == 0 {
			return ctx, nil
		}
	}
	if args, ok := schemas.repair(e, i.Call); ok {
		i.Call.Args = args
		if i.Relayed {
			i.Params = rawjson.Set(i.Params, "arguments", args)
		}
		return ctx, nil
	}
	return ctx, invalidArgs(&e.info, violations)
}

// repair returns arguments that match the schema, if it is clear which were meant.
func (s *schemas) repair(e *entry, call tool.Call) (json.RawMessage, bool) {
	schema := s.of(e)
	if source, ok := e.source.(ArgRepairer); ok {
		if repaired, ok := source.RepairArgs(call.Ref, call.Args); ok && len(schema.check(repaired)) == 0 {
			return repaired, true
		}
	}
	repaired, ok := schema.fixEmptyTables(call.Args)
	return repaired, ok && len(schema.check(repaired)) == 0
}

// check lists what is wrong with args; nothing when they cannot be checked.
func (s *schema) check(args json.RawMessage) []Violation {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if first := bytes.TrimLeft(args, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return []Violation{{Expected: "object", Got: shortened(args), Problem: "arguments must be an object"}}
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

// needsFullCheck tells whether args need the full check, and allow it.
func (s *schema) needsFullCheck(args json.RawMessage) bool {
	return s.compiled != nil && len(args) <= maxArgs && hasSmallNumbers(args) && !(json.Valid(args) && s.fast.fits(args))
}

// validate runs the library's check, which may panic on unusual schemas.
func (s *schema) validate(value any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("schema checker: %v", p)
		}
	}()
	return s.compiled.Validate(value)
}

// invalidArgs is the error with everything that is wrong with the arguments, and what
// the tool takes.
func invalidArgs(info *tool.Info, violations []Violation) error {
	lines := make([]string, len(violations))
	for i, v := range violations {
		lines[i] = v.String()
	}
	return fault.New(fault.InvalidParams, "call %s: %s", info.Ref, strings.Join(lines, "; ")).
		WithHint("%s takes %s", info.Ref, Signature(info.Input)).
		WithDetails(map[string]any{"tool": info.Ref.String(), "violations": violations})
}
