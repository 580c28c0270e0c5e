package conversation

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/principal"
)

// Nobody writes in a conversation of somebody else, whatever is shared: what they say would
// be read by the model in the owner's next turn, which has the owner's rights. They copy it,
// and go on in their own.

// Shares are what owners share with others of their organisation.
type Shares interface {
	principal.Shares
	// End ends the shares of things that are deleted.
	End(ctx context.Context, kind principal.Kind, ids ...string) error
	// NameOf returns the name of an owner for people.
	NameOf(id string) string
}

// reference is how shares name a conversation: ORG/USER/ID, because ids are unique per person
// only. The organisation is that of the principal, empty for those without one, whose
// conversations are in profile.DefaultOrg.
type reference struct{ org, user, id string }

func (f reference) String() string {
	return url.PathEscape(f.org) + "/" + url.PathEscape(f.user) + "/" + f.id
}

func parseReference(text string) (f reference, ok bool) {
	parts := strings.SplitN(text, "/", 3)
	if len(parts) != 3 || parts[1] == "" {
		return f, false
	}
	org, err1 := url.PathUnescape(parts[0])
	user, err2 := url.PathUnescape(parts[1])
	return reference{org, user, parts[2]}, err1 == nil && err2 == nil
}

func (f reference) person() profile.Person {
	return profile.Person{Org: cmp.Or(f.org, profile.DefaultOrg), User: f.user}
}

// ownerID is the ID that shares have for whoever chats as the user, with a key or signed in.
func (f reference) ownerID() string { return principal.PersonID(f.user, f.org) }

// references returns the names that shares can have for a conversation of a person.
func references(p profile.Person, id string) []reference {
	list := []reference{{p.Org, p.User, id}}
	if p.Org == profile.DefaultOrg {
		list = append(list, reference{"", p.User, id})
	}
	return list
}

// Access says whose a conversation is, and what the caller may do with it.
type Access struct {
	Person profile.Person
	ID     string          // among the person's
	Owner  string          // the person's name; empty for one's own
	Shared principal.Level // what the person permits; Nothing for one's own
}

// Access returns the conversation that an id means to a person: one of theirs, or one that
// is shared with the caller. An unknown id is one of theirs, without messages.
func (s *Store) Access(ctx context.Context, p profile.Person, id string) (Access, error) {
	own := Access{Person: p, ID: id}
	ref, ok := parseReference(id)
	if !ok || s.options.Shares == nil {
		return own, nil
	}
	if exists, err := s.exists(ctx, p, id); exists || err != nil {
		return own, err
	}
	if slices.Contains(references(p, ref.id), ref) {
		return Access{Person: p, ID: ref.id}, nil
	}
	level, err := s.options.Shares.Level(ctx, principal.Of(ctx), principal.Conversation, ref.String())
	if err != nil || level == principal.Nothing {
		return own, err
	}
	return Access{ref.person(), ref.id, s.options.Shares.NameOf(ref.ownerID()), level}, nil
}

// MayRead reports whether the conversation of somebody else's message is shared with the
// caller.
func (s *Store) MayRead(ctx context.Context, m Message) (bool, error) {
	if s.options.Shares == nil {
		return false, nil
	}
	for _, ref := range references(m.Person, m.Conversation) {
		level, err := s.options.Shares.Level(ctx, principal.Of(ctx), principal.Conversation, ref.String())
		if err != nil || level.Permits(principal.See) {
			return err == nil, err
		}
	}
	return false, nil
}

// shared lists the conversations that others share with the caller, for a person as whom the
// caller chats in its own organisation.
func (s *Store) shared(ctx context.Context, p profile.Person) (list []Conversation, err error) {
	who := principal.Of(ctx)
	if s.options.Shares == nil || p.Org != cmp.Or(who.Org, profile.DefaultOrg) {
		return nil, nil
	}
	ids, err := s.options.Shares.IDs(ctx, who, principal.Conversation)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		ref, ok := parseReference(id)
		if !ok || ref.person() == p {
			continue
		}
		found, err := s.summaries(ctx, ref.person(), ref.id)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			c.ID, c.Owner = id, s.options.Shares.NameOf(ref.ownerID())
			if c.Shared, err = s.options.Shares.Level(ctx, who, principal.Conversation, id); err != nil {
				return nil, err
			}
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Conversation) int { return b.Updated.Compare(a.Updated) })
	return list, nil
}

// SharedConversation finds a conversation for those who share it, by the id that it has for
// the caller or by the name that shares have for it.
func (s *Store) SharedConversation(ctx context.Context, id string) (principal.Thing, error) {
	ref, err := s.referenceOf(ctx, id)
	if err != nil {
		return principal.Thing{}, err
	}
	found, err := s.summaries(ctx, ref.person(), ref.id)
	switch {
	case err != nil:
		return principal.Thing{}, err
	case len(found) == 0:
		return principal.Thing{}, errNoConversation(id)
	case strings.Contains(ref.user, "/"): // their owner could not be told from others
		return principal.Thing{}, fault.New(fault.InvalidParams, "conversations of %s cannot be shared", ref.user).WithHint("use a user_id without /")
	}
	return principal.Thing{ID: ref.String(), Owner: principal.Owner{ID: ref.ownerID(), Org: ref.org}, Title: found[0].Title}, nil
}

func (s *Store) referenceOf(ctx context.Context, id string) (reference, error) {
	if who := principal.Of(ctx); who.User != "" {
		own := reference{who.Org, who.User, id}
		if exists, err := s.exists(ctx, own.person(), id); exists || err != nil {
			return own, err
		}
	}
	ref, ok := parseReference(id)
	if !ok {
		return ref, errNoConversation(id)
	}
	return ref, nil
}

func errNoConversation(id string) error { return fault.New(fault.NotFound, "no conversation %s", id) }

func (s *Store) exists(ctx context.Context, p profile.Person, id string) (exists bool, err error) {
	err = s.db.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM talk_turns WHERE org = $1 AND person = $2 AND conversation = $3)`, p.Org, p.User, id).Scan(&exists)
	return exists, err
}

// Prepare is called before a message is stored. Ids are used again, also the empty
// one: what was shared under this id was another conversation. One that somebody else shares
// is not begun anew.
func (s *Store) Prepare(ctx context.Context, m Message) error {
	if s.options.Shares == nil {
		return nil
	}
	if exists, err := s.exists(ctx, m.Person, m.Conversation); exists || err != nil {
		return err
	}
	access, err := s.Access(ctx, m.Person, m.Conversation)
	if err != nil {
		return err
	}
	if access.Shared != principal.Nothing {
		return fault.New(fault.Denied, "the conversation belongs to %s", access.Owner).
			WithHint("go on in a copy of your own: POST /api/v1/orgs/ORG/users/USER/conversation/copy")
	}
	return s.endShares(ctx, m.Person, m.Conversation)
}

// endShares ends the shares of conversations that a person deleted.
func (s *Store) endShares(ctx context.Context, p profile.Person, ids ...string) error {
	if s.options.Shares == nil {
		return nil
	}
	for _, id := range ids {
		for _, ref := range references(p, id) {
			if err := s.options.Shares.End(ctx, principal.Conversation, ref.String()); err != nil {
				return err
			}
		}
	}
	return nil
}
