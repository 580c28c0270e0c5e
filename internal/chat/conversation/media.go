package conversation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/agent"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/store/db"
)

// Attachment is an image, a sound or a file of a message. Its data is stored beside the
// message.
type Attachment struct {
	agent.MediaInfo
	Hash string `json:"hash"`
	Data []byte `json:"-"` // nil if the message was loaded
}

// Same reports whether two attachments are the same, whatever their names.
func (a Attachment) Same(b Attachment) bool { return a.Hash == b.Hash && a.MIME == b.MIME }

// Attach adds an image, a sound or a file to a message.
func (m *Message) Attach(media llm.Media) {
	sum := sha256.Sum256(media.Data)
	info := agent.MediaInfo{ID: fmt.Sprintf("in.%d", len(m.Attachments)+1), Name: media.Name, MIME: media.MIME, Size: len(media.Data)}
	m.Attachments = append(m.Attachments, Attachment{info, hex.EncodeToString(sum[:]), media.Data})
}

// described returns the text of a message in the history, with a note about each attachment.
func (m Message) described() string {
	text := m.Text
	for _, a := range m.Attachments {
		text = strings.TrimPrefix(fmt.Sprintf("%s\n[attached: %s]", text, cmp.Or(a.Name, a.MIME)), "\n")
	}
	return text
}

func saveMedia(ctx context.Context, tx *db.Tx, turn, id string, m llm.Media) error {
	_, err := tx.Exec(ctx, `INSERT INTO talk_media (turn, id, name, mime, data) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (turn, id) DO UPDATE SET name = excluded.name, mime = excluded.mime, data = excluded.data`, turn, id, m.Name, m.MIME, m.Data)
	return err
}

// StoredMedia is how many images, sounds and files are stored, and how large they are.
type StoredMedia struct {
	Count int
	Bytes int64
}

// storedMedia returns what is stored of a person's messages and answers.
func storedMedia(ctx context.Context, tx *db.Tx, p profile.Person) (has StoredMedia, err error) {
	err = tx.QueryRow(ctx, `SELECT count(*), coalesce(sum(length(data)), 0) FROM talk_media
		WHERE turn IN (SELECT id FROM talk_turns WHERE org = $1 AND person = $2)`, p.Org, p.User).Scan(&has.Count, &has.Bytes)
	return has, err
}

// checkSpace refuses more than may be stored of a person.
func (s *Store) checkSpace(ctx context.Context, tx *db.Tx, p profile.Person, more StoredMedia) error {
	limit := s.options.Stored
	if limit == (StoredMedia{}) || more.Count == 0 {
		return nil
	}
	has, err := storedMedia(ctx, tx, p)
	if err != nil {
		return err
	}
	if limit.Count > 0 && has.Count+more.Count > limit.Count || limit.Bytes > 0 && has.Bytes+more.Bytes > limit.Bytes {
		return fault.New(fault.Limit, "the attachments do not fit: %d images, sounds and files with %d bytes are stored of %s, at most %d with %d bytes are allowed",
			has.Count, has.Bytes, p.User, limit.Count, limit.Bytes).WithHint("delete a conversation that has some, or raise chat.attachments_mb and chat.attachments")
	}
	return nil
}

// SaveAttachments stores the attachments of a message with it.
func (s *Store) SaveAttachments(ctx context.Context, tx *db.Tx, turn string, m Message) error {
	more := StoredMedia{Count: len(m.Attachments)}
	for _, a := range m.Attachments {
		more.Bytes += int64(len(a.Data))
	}
	if err := s.checkSpace(ctx, tx, m.Person, more); err != nil {
		return err
	}
	for _, a := range m.Attachments {
		if err := saveMedia(ctx, tx, turn, a.ID, llm.Media{Name: a.Name, MIME: a.MIME, Data: a.Data}); err != nil {
			return err
		}
	}
	return nil
}

// Attachments returns the attachments of a message for the agent.
func (s *Store) Attachments(ctx context.Context, turn string, m Message) (list []llm.Media, err error) {
	for _, a := range m.Attachments {
		media := llm.Media{Name: a.Name, MIME: a.MIME, Data: a.Data}
		if media.Data == nil {
			if media, err = s.Media(ctx, turn, a.ID); err != nil {
				return nil, err
			}
		}
		list = append(list, media)
	}
	return list, nil
}

// SaveShown stores what a tool shows while it answers a person, so that people can load it.
func (s *Store) SaveShown(ctx context.Context, turn string, p profile.Person, m agent.Media) error {
	return s.db.Write(ctx, func(tx *db.Tx) error {
		if err := s.checkSpace(ctx, tx, p, StoredMedia{1, int64(len(m.Data))}); err != nil {
			return err
		}
		return saveMedia(ctx, tx, turn, m.ID, llm.Media{Name: m.Name, MIME: m.MIME, Data: m.Data})
	})
}

// Media returns an image, a sound or a file of a message or of its answer.
func (s *Store) Media(ctx context.Context, turn, id string) (m llm.Media, err error) {
	err = s.db.QueryRow(ctx, `SELECT name, mime, data FROM talk_media WHERE turn = $1 AND id = $2`, turn, id).Scan(&m.Name, &m.MIME, &m.Data)
	if errors.Is(err, sql.ErrNoRows) {
		return m, fault.New(fault.NotFound, "the message %s has nothing with the id %q", turn, id)
	}
	return m, err
}
