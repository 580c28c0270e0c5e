package host

import "context"

// Flow tracks what a run has read and decides where that data may go. It is safe for
// concurrent use.
type Flow interface {
	// Begin gives ctx a record of what is read from now on, unless it has one: a nested
	// run shares the record of its parent.
	Begin(ctx context.Context) context.Context
	// Detach returns ctx without such a record, for the run of somebody else.
	Detach(ctx context.Context) context.Context
	// Recall adds what Remember stored under name, such as "job:…", to the record.
	Recall(ctx context.Context, name string) error
	// Remember stores the record under name.
	Remember(ctx context.Context, name string) error
	// Check is called before an effect; an error refuses it.
	Check(ctx context.Context, e Effect) error
	// Answered is called after an effect was answered, also from a journal.
	Answered(ctx context.Context, e Effect)
}

// TrackFlow asks flow about every effect before it is passed to inner.
func TrackFlow(inner Handler, flow Flow) Handler {
	if flow == nil {
		return inner
	}
	return flowHandler{inner, flow}
}

type flowHandler struct {
	inner Handler
	flow  Flow
}

// Rehearsing implements the check of the function Rehearsing.
func (d flowHandler) Rehearsing() bool { return Rehearsing(d.inner) }

func (d flowHandler) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if err := d.flow.Check(ctx, e); err != nil {
		return nil, err
	}
	defer d.flow.Answered(ctx, e)
	return d.inner.Handle(ctx, e, live)
}
