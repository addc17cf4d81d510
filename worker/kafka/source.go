package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/lakeweir/lakeweir/catalog"
	"github.com/lakeweir/lakeweir/worker/debezium"
	"github.com/lakeweir/lakeweir/worker/pipeline"
)

// Source reads the topics of one source. See pipeline.Source for who may call what.
type Source struct {
	cfg     Config
	client  *kgo.Client
	admin   *kadm.Client
	tables  []*table // the heartbeat's included
	byName  map[string]*table
	stop    context.CancelFunc
	stopped chan struct{} // closed when the keeper of topics has ended

	// Of Next.
	byTopic  map[string]*table // those that are under way
	pending  []stretch         // fetched and not read
	record   debezium.Record   // scratch
	full     bool              // the slice is as large as it may be
	progress progress
	sent     sent
	told     catalog.LSN // the newest Through that was handed over

	requests    []*request // to read rows again; of Next, as is what follows
	reading     *reading   // the signal that is under way
	signalAfter time.Time  // when the next one may be sent
	unreadTimes int        // how often in a row one came to nothing
	running     context.Context
	signals     sync.WaitGroup

	ask     chan struct{} // to the keeper: list the topics' ends
	answers chan ends
	news    chan struct{} // to Next: there is something in the fields below

	mu        sync.Mutex
	arrivals  []arrival
	faults    []pipeline.Fault
	failed    error
	requested []pipeline.Reread
	saved     map[string]*catalog.TopicOffsets // by table
	unsaid    bool                             // the group has not been told of saved
	confirmed catalog.LSN
	newest    catalog.LSN
	active    bool
	silent    string // what was logged last of what waits
}

var (
	_ pipeline.Source        = (*Source)(nil)
	_ pipeline.OffsetKeeper  = (*Source)(nil)
	_ pipeline.SlotElsewhere = (*Source)(nil)
)

// New returns a Source; it does no I/O.
func New(cfg Config) *Source {
	cfg = cfg.withDefaults()
	if cfg.Schemas == nil && cfg.Source.Connector.SchemaRegistry != "" {
		cfg.Schemas = newSchemas(cfg.Source.Connector.SchemaRegistry, cfg.Limits.Request)
	}
	return &Source{
		cfg: cfg, byName: map[string]*table{}, byTopic: map[string]*table{}, saved: map[string]*catalog.TopicOffsets{},
		ask: make(chan struct{}, 1), answers: make(chan ends, 1), news: make(chan struct{}, 1),
		progress: progress{settle: cfg.Limits.Settle}, sent: sent{},
	}
}

// Start implements pipeline.Source. Brokers, or a source, that cannot be reached are
// no error: what could not be found out is found out while Next is called.
func (s *Source) Start(ctx context.Context, resumes []pipeline.Resume) ([]pipeline.Fault, error) {
	var err error
	if s.client, err = newClient(s.cfg); err != nil {
		return nil, err
	}
	s.admin = kadm.NewClient(s.client)
	for _, r := range resumes {
		t := &table{cfg: r.Table, name: r.Table.Name.String(), topic: s.cfg.Source.Connector.Topic(r.Table.Name), resume: r}
		s.tables = append(s.tables, t)
		s.byName[t.name] = t
	}
	if beat := s.cfg.Source.Heartbeat.Table; beat.Name != "" && s.cfg.Describe != nil && s.byName[beat.String()] == nil {
		s.tables = append(s.tables, &table{
			cfg: &catalog.Table{Source: s.cfg.Source.Name, Name: beat}, name: beat.String(), topic: s.cfg.Source.Connector.Topic(beat), heartbeat: true,
		})
	}
	s.place(ctx)
	keepCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop, s.stopped, s.running = stop, make(chan struct{}), keepCtx
	go func() {
		defer close(s.stopped)
		s.keep(keepCtx)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := s.faults
	s.faults = nil
	for _, f := range faults {
		if f.State == catalog.Gap {
			s.note(ctx, s.byName[f.Table], f.Err)
		}
	}
	return faults, s.failed
}

// Drop implements pipeline.Source.
func (s *Source) Drop(name string) {
	if t := s.byName[name]; t != nil {
		t.stopped.Store(true)
		s.client.PauseFetchTopics(t.topic)
	}
}

// Confirm implements pipeline.Source. Kafka forgets when retention says so.
func (s *Source) Confirm(_ context.Context, through catalog.LSN) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = max(s.confirmed, through)
	return nil
}

// Saved implements pipeline.OffsetKeeper.
func (s *Source) Saved(name string, offsets *catalog.TopicOffsets) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !offsets.Equal(s.saved[name]) {
		s.saved[name], s.unsaid = offsets, true
	}
}

// SlotReader implements pipeline.SlotElsewhere.
func (s *Source) SlotReader() string { return "connector " + s.cfg.Source.Connector.Name }

// Status implements pipeline.Source: where the source's log and the connector's slot
// stand, as the source says. Where it is not asked, how far its log was seen.
func (s *Source) Status(ctx context.Context) (pipeline.SourceStatus, error) {
	if s.cfg.Slot != nil {
		return s.cfg.Slot.Status(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return pipeline.SourceStatus{End: s.newest, Confirmed: s.confirmed, Active: s.active}, nil
}

// Close implements pipeline.Source.
func (s *Source) Close(ctx context.Context) error {
	if s.cfg.Slot != nil {
		s.cfg.Slot.Close()
	}
	if s.client == nil {
		return nil
	}
	if s.stop != nil {
		s.stop()
		<-s.stopped
		s.signals.Wait()
		s.commit(ctx)
	}
	s.client.Close()
	return nil
}

// fail ends the source with an error that waiting does not mend.
func (s *Source) fail(err error) {
	s.mu.Lock()
	s.failed = errors.Join(s.failed, err)
	s.mu.Unlock()
	s.wake()
}

// fault stops a table from outside of Next.
func (s *Source) fault(t *table, state catalog.State, err *catalog.Error) {
	if t.heartbeat {
		t.stopped.Store(true)
		s.cfg.Logger.Warn("heartbeats are not read", "source", s.cfg.Source.Name, "topic", t.topic, "code", err.Code, "reason", err.Message)
		return
	}
	if err.At == "" {
		err.At = t.cfg.ID()
	}
	s.mu.Lock()
	s.faults = append(s.faults, pipeline.Fault{Table: t.name, State: state, Err: err, Keep: true})
	s.mu.Unlock()
	s.wake()
}

func (s *Source) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// waiting logs, once, what is being waited for.
func (s *Source) waiting(ctx context.Context, what string, err error) {
	s.mu.Lock()
	said := s.silent == what
	s.silent, s.active = what, false
	s.mu.Unlock()
	if !said && ctx.Err() == nil {
		s.cfg.Logger.WarnContext(ctx, "trying again", "source", s.cfg.Source.Name, "because", what, "error", err)
	}
}

// heard notes that the brokers answer.
func (s *Source) heard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent, s.active = "", true
}

// micros is a time of the source's clock; zero when it is not known.
func micros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
