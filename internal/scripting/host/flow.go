package host

import "context"

// Flow follows what a run has read, and decides where that may go. It is safe for
// concurrent use.
type Flow interface {
	// Begin gives ctx a record of what is read from here on, unless it has one: a
	// script that another one asked for is a part of that.
	Begin(ctx context.Context) context.Context
	// Recall adds to the record what was remembered under a name, such as "job:…".
	Recall(ctx context.Context, name string) error
	// Remember keeps under a name what the record has.
	Remember(ctx context.Context, name string) error
	// Handle is asked before an effect happens; its error refuses it.
	Check(ctx context.Context, e Effect) error
	// Answered is told that an effect was answered, also when the answer came from a
	// journal.
	Answered(ctx context.Context, e Effect)
}

// TrackFlow asks flow about every effect before inner gets it.
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

// Rehearsing is what the door behind does.
func (d flowHandler) Rehearsing() bool { return Rehearsing(d.inner) }

func (d flowHandler) Handle(ctx context.Context, e Effect, live func(context.Context) ([]Value, error)) ([]Value, error) {
	if err := d.flow.Check(ctx, e); err != nil {
		return nil, err
	}
	defer d.flow.Answered(ctx, e)
	return d.inner.Handle(ctx, e, live)
}
