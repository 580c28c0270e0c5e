package script

import (
	"context"

	"github.com/luanette/luanette/internal/scripting/host"
)

// prepare checks the params of a turn that calls main, and fills in defaults. describe()
// runs in a copy of the session, because it may need its globals.
func (s *Sessions) prepare(ctx context.Context, owner, id string, q Request) (Request, error) {
	described := Request{
		Source: q.Source, Language: q.Language, Limits: describeLimits, entry: &entry{name: "describe", optional: true},
		Handler: host.NewInspection("the script is being described"),
	}
	session, err := s.load(ctx, owner, id, s.live.version(id))
	if err != nil {
		return q, err
	}
	if described.Language == "" {
		described.Language = session.Language
	}
	engine, err := s.runner.engineFor(described)
	if err != nil {
		return q, err
	}
	if engine.compile(ctx, described) != nil { // the turn itself reports it
		return q, nil //nolint:nilerr // see above
	}
	if !engine.mayDefine(described, "describe") && engine.mayDefine(described, "main") {
		return q, nil // the session's describe() belongs to another main
	}
	outcome, err := s.Preview(ctx, owner, id, described)
	if err != nil {
		return q, describeError(err)
	}
	if described.entry.absent {
		return q, nil
	}
	d, err := readDescription(outcome.Result)
	if err != nil {
		return q, &Error{Kind: Misdescribed, Script: q.label(), Message: err.Error(), Troubleshooting: s.runner.advice(described, Misdescribed), cause: err, language: described.Language}
	}
	return s.runner.checkParams(ctx, q, d)
}
