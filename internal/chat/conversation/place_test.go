package conversation_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/chat/conversation"
)

// TestPlacesDecideTheOrder checks that messages are answered in the order of their
// places, in whichever order they are sent, and that a place that is given up holds
// nobody up.
func TestPlacesDecideTheOrder(t *testing.T) {
	t.Parallel()
	service, _ := open(t, store(t), echo, conversation.Options{})
	const messages = 20
	places := make([]*conversation.Place, messages)
	now := time.Now()
	for i := range places {
		n := i ^ 1 // read in another order than received
		places[n] = service.Reserve(ann, now.Add(time.Duration(n)*time.Millisecond))
	}
	var want []string
	var all sync.WaitGroup
	for i, place := range slices.Backward(places) {
		if i%5 == 3 {
			place.Release()
			continue
		}
		all.Go(func() {
			turn, err := service.Send(t.Context(), conversation.Message{Person: ann, Place: place, Text: fmt.Sprint(i)})
			if err != nil {
				t.Error(err)
				return
			}
			answered(t, turn)
		})
	}
	all.Wait()
	for i := range messages {
		if i%5 != 3 {
			want = append(want, fmt.Sprintf("%d → re: %d", i, i))
		}
	}
	if got := history(t, service, ann); !slices.Equal(got, want) {
		t.Errorf("history %q, want %q", got, want)
	}
}
