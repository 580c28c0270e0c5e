package conversation

import (
	"context"

	"github.com/luanette/luanette/internal/chat/agent"
)

const memoryKind = "memory"

// Memory returns what the agent remembers about a person.
func (r *Service) Memory(p Person) agent.Memory { return memory{r, p} }

type memory struct {
	service *Service
	person  Person
}

func (m memory) Load(ctx context.Context) (sections []agent.Section, err error) {
	_, err = m.service.loadDocument(ctx, m.person, memoryKind, "", &sections)
	return sections, err
}

func (m memory) Save(ctx context.Context, sections []agent.Section) error {
	return m.service.saveDocument(ctx, m.person, memoryKind, "", sections)
}

// ClearMemory deletes a person's memory.
func (r *Service) ClearMemory(ctx context.Context, p Person) error {
	_, err := r.removeDocument(ctx, p, memoryKind, "")
	return err
}
