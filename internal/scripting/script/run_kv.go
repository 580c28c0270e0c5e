package script

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/kv"
)

// scriptValues are the values of one script of one principal. What was read by the run
// that stored them counts as read by the run that gets them.
type scriptValues struct {
	store *kv.Store
	space kv.Space
	flow  host.Flow // may be nil
}

// kvFor returns the values of the run's script; nil if there is no store.
func (r *Runner) kvFor(ctx context.Context, q Request) host.KV {
	if r.options.KV == nil {
		return nil
	}
	return scriptValues{r.options.KV, kv.Space{Owner: principal.Of(ctx).ID, Script: principal.InOrg(q.ownName(), q.Org)}, r.options.Flow}
}

// ownName is the name of the script; "" for code without a name. Turns of sessions have
// names only for positions in messages.
func (q Request) ownName() string {
	if q.turn != nil {
		return ""
	}
	return q.Name
}

// record is the name under which the flow of the values is stored.
func (v scriptValues) record() string { return "kv:" + v.space.Owner + "/" + v.space.Script }

func (v scriptValues) recall(ctx context.Context) error {
	if v.flow == nil {
		return nil
	}
	return v.flow.Recall(ctx, v.record())
}

func (v scriptValues) remember(ctx context.Context) error {
	if v.flow == nil {
		return nil
	}
	return v.flow.Remember(ctx, v.record())
}

func (v scriptValues) Get(ctx context.Context, key string) (json.RawMessage, error) {
	if err := v.recall(ctx); err != nil {
		return nil, err
	}
	value, _, err := v.store.Get(ctx, v.space, key)
	return value, err
}

func (v scriptValues) Set(ctx context.Context, key string, value json.RawMessage, lifetime time.Duration) error {
	if err := v.remember(ctx); err != nil {
		return err
	}
	return v.store.Set(ctx, v.space, key, value, lifetime)
}

func (v scriptValues) Delete(ctx context.Context, key string) (bool, error) {
	return v.store.Delete(ctx, v.space, key)
}

func (v scriptValues) Swap(ctx context.Context, key string, c host.KVChange) (bool, error) {
	if err := v.recall(ctx); err != nil {
		return false, err
	}
	if err := v.remember(ctx); err != nil {
		return false, err
	}
	return v.store.Swap(ctx, v.space, key, kv.Change{Old: c.Old, New: c.New, Lifetime: c.Lifetime, Token: c.Token})
}

func (v scriptValues) List(ctx context.Context, prefix string) ([]host.KVEntry, error) {
	if err := v.recall(ctx); err != nil {
		return nil, err
	}
	found, err := v.store.List(ctx, v.space, prefix)
	entries := make([]host.KVEntry, len(found))
	for i, e := range found {
		entries[i] = host.KVEntry{Key: e.Key, Value: e.Value}
		if !e.Expires.IsZero() {
			entries[i].Expires = e.Expires.UnixMilli()
		}
	}
	return entries, err
}
