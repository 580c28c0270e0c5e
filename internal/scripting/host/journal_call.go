package host

import (
	"encoding/json"

	"github.com/luanette/luanette/internal/core/tool"
)

// CallOf returns the effect of calling a tool.
func CallOf(ref tool.Ref, arguments json.RawMessage) Effect {
	return Effect{Name: callEffect, Kind: Write, Args: []Value{ref.Space, ref.Name, arguments}}
}

// Called reports whether the step is a call of a tool.
func (s Step) Called() bool { return s.Name == callEffect }

// Changed reports whether the step changed something, or may have. The changes of nested
// runs are steps of their own.
func (s Step) Changed() bool {
	return (s.Kind == Write || s.Kind == Idempotent) && s.Err == nil
}

// Calls returns the tool that the step called, with the arguments and the result; each is
// nil if it is not known. ok is false if the step is no call.
func (s Step) Calls() (ref tool.Ref, arguments, result json.RawMessage, ok bool) {
	if !s.Called() {
		return ref, nil, nil, false
	}
	args := Args{Values: s.Args}
	ref, arguments, relayed := RelayedCall(args)
	if !relayed {
		ref = CalledTool(args)
		switch given := args.At(3).(type) {
		case json.RawMessage:
			arguments = given
		case nil:
			arguments = json.RawMessage("{}")
		}
	}
	if len(s.Values) > 0 {
		result, _ = s.Values[0].(json.RawMessage)
	}
	return ref, arguments, result, true
}
