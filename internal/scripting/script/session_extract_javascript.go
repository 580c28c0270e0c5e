package script

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed session_extract.js
var extractJavaScript string

// extractJS extracts a function of a JavaScript session. It runs in a copy of the session,
// without effects.
func (s *Sessions) extractJS(ctx context.Context, row sessionRow, name string) (w ExtractedScript, err error) {
	deny := host.DenyEffects("a function is being extracted")
	standard, err := s.runner.run(ctx, Request{Source: "Object.getOwnPropertyNames(globalThis)", Language: JavaScript, Handler: deny})
	if err != nil {
		return w, err
	}
	q, err := s.inSession(Request{Source: fmt.Sprintf("%s(%s, %s)", extractJavaScript, standard.Result, encode(name)), Handler: deny}, row, nil)
	if err != nil {
		return w, err
	}
	q.FlowName = ""
	outcome, err := s.runner.run(ctx, q)
	if lost := q.turn.restoreError(); lost != nil {
		return w, lost
	}
	if err != nil {
		return w, err
	}
	return readExtracted(outcome.Result, name)
}

// readExtracted reads what the extraction returned, in either language.
func readExtracted(raw json.RawMessage, name string) (ExtractedScript, error) {
	var written struct {
		Source, Problem string
		Warnings        []string
	}
	if err := json.Unmarshal(raw, &written); err != nil {
		return ExtractedScript{}, fault.Wrap(fault.Internal, err, "extract %s", name)
	}
	if written.Problem != "" {
		return ExtractedScript{}, fault.New(fault.NotFound, "%s", written.Problem).WithHint("define a function of that name, or main(params), and save again")
	}
	return ExtractedScript{written.Source, written.Warnings}, nil
}
