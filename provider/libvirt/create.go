package libvirt

import (
	"context"
	"errors"
	"fmt"

	api "github.com/digitalocean/go-libvirt"

	"github.com/leasehold/leasehold/provider"
)

// Create defines the domain of an instance, with the first size that there is room for, makes its
// volumes and starts it. Called again, it completes what was interrupted, and else returns the
// machine that is there, up or down.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (m provider.Machine, err error) {
	b := req.Bootstrap
	if b.Shard == "" || b.Instance == "" {
		return m, fmt.Errorf("%w: the bootstrap document names no shard or no instance", provider.ErrInvalid)
	}
	if err := p.Validate(req.Template); err != nil {
		return m, err
	}
	h, err := p.hypervisor(req.Zone)
	if err != nil {
		return m, err
	}
	k := key{b.Shard, b.Instance}
	err = p.locks.With(ctx, k, func() error {
		p.forgetUndefined(k)
		d, err := p.create(ctx, h, req)
		if err == nil {
			m = d.machine(h.zone, p.timeout)
			p.learn(k, h.zone)
		}
		return err
	})
	if err != nil {
		return provider.Machine{}, fmt.Errorf("create machine %s: %w", b.Instance, h.meaning(err, ""))
	}
	return m, nil
}

// plan is what a Create makes on one hypervisor.
type plan struct {
	key
	name     string
	settings templateSettings
	sizes    []size
	record   record
	pool     api.StoragePool
	dir      string   // of the pool
	volumes  []volume // without the console's
	oem      string   // the OEM string with the document; "": it comes with a seed
}

func (p *Provider) create(ctx context.Context, h *hypervisor, req provider.CreateRequest) (*domain, error) {
	k := key{req.Bootstrap.Shard, req.Bootstrap.Instance}
	var d *domain
	var err error
	if err = h.use(ctx, func(l *link) error { d, err = look(l, k); return err }); err != nil {
		return nil, err
	}
	if d != nil && d.isOf(k) && d.Step != stepNew && d.Step != stepStarting && d.Step != stepFailed {
		return d, nil
	}
	pl, err := p.planOf(ctx, h, req)
	if err != nil {
		return nil, err
	}
	sizes := pl.sizes
	for {
		if d == nil {
			if sizes, err = p.defineOne(ctx, h, pl, sizes); err != nil {
				return nil, err
			}
			if err = h.use(ctx, func(l *link) error { d, err = look(l, k); return err }); err != nil {
				return nil, err
			}
		}
		if d == nil {
			return nil, errors.New("the domain was removed meanwhile")
		}
		if !d.isOf(k) {
			return nil, fmt.Errorf("the hypervisor has a domain %s that is not this instance's (shard %q, "+
				"instance %q by its metadata): rename or remove it",
				d.Name, d.Shard, d.Instance)
		}
		done, err := p.complete(ctx, h, pl, d)
		kind := provider.KindOf(h.meaning(err, ""))
		if err == nil || kind != provider.Capacity && kind != provider.Invalid || ctx.Err() != nil {
			return done, err
		}
		// It never ran. The next size may fit, and one that is wrong must not stay.
		of := d.Type
		if of != "" {
			of = "type " + of
		}
		err = h.meaning(err, of)
		if gone, e := p.removeUnstarted(ctx, h, k, d); e != nil || !gone {
			return nil, errors.Join(err, e)
		}
		if d = nil; len(sizes) == 0 || kind == provider.Invalid {
			return nil, err
		}
	}
}

// planOf resolves what a template names, so that one which is wrong makes nothing.
func (p *Provider) planOf(ctx context.Context, h *hypervisor, req provider.CreateRequest) (pl plan, err error) {
	b := req.Bootstrap
	pl.key = key{b.Shard, b.Instance}
	pl.name = pl.nameOf()
	if pl.settings, err = p.readSettings(req.Template.Settings); err != nil {
		return pl, err
	}
	if pl.sizes, err = p.sizesOf(req.Template, pl.settings); err != nil {
		return pl, err
	}
	var base volumeXML
	err = h.use(ctx, func(l *link) error {
		if pl.pool, pl.dir, err = poolOf(l, p.config.Pool); err != nil {
			return err
		}
		for _, name := range []string{pl.settings.Kernel, pl.settings.Initrd} {
			if name == "" {
				continue
			}
			if _, err := file(ctx, l, pl.pool, name); err != nil {
				return err
			}
		}
		if pl.settings.Image != "" {
			base, err = file(ctx, l, pl.pool, pl.settings.Image)
		}
		return err
	})
	if err != nil {
		return pl, err
	}
	if err := pl.addVolumes(base); err != nil {
		return pl, err
	}
	if pl.settings.Bootstrap == byCloudInit {
		seed, err := seedOf(req)
		if err != nil {
			return pl, err
		}
		pl.volumes = append(pl.volumes, volume{
			name: pl.name + seedSuffix, format: "raw", capacity: uint64(len(seed)),
			content: seed,
		})
	} else if pl.oem, err = oemString(b); err != nil {
		return pl, err
	}
	pl.record = record{
		Shard: b.Shard, Instance: b.Instance, Group: b.Group, Zone: h.zone, Call: req.Call, Patience: b.StopTimeout,
		Pool: p.config.Pool, Networks: *pl.settings.Networks, Tags: tagsOf(req.Template.Tags),
	}
	pl.record.note(stepNew)
	return pl, nil
}

// addVolumes adds the disks.
func (pl *plan) addVolumes(base volumeXML) error {
	s := pl.settings
	if s.Image != "" {
		root := volume{
			name: pl.name + rootSuffix, format: "qcow2", capacity: base.Capacity,
			backing: &backingXML{Path: pl.path(s.Image)},
		}
		root.backing.Format.Type = base.Target.Format.Type
		if f := base.Target.Format.Type; f != "qcow2" && f != "raw" {
			return &provider.Error{
				Kind:    provider.Invalid,
				Message: fmt.Sprintf("volume %s has the format %s: an image must be qcow2 or raw", s.Image, f),
			}
		}
		if s.Disk != "" {
			want, err := parseSize(s.Disk)
			if err != nil {
				return err
			}
			if want < base.Capacity {
				return &provider.Error{
					Kind:    provider.Invalid,
					Message: fmt.Sprintf("settings.disk: %s is smaller than the image %s", s.Disk, s.Image),
				}
			}
			root.capacity = want
		}
		pl.volumes = append(pl.volumes, root)
	}
	if s.DataDisk != "" {
		want, err := parseSize(s.DataDisk)
		if err != nil {
			return err
		}
		pl.volumes = append(pl.volumes, volume{name: pl.name + dataSuffix, format: "qcow2", capacity: want})
	}
	return nil
}

// defineOne defines the domain with the first size that there is room for, and returns those that
// are left. A domain that is there already is left as it is.
func (p *Provider) defineOne(ctx context.Context, h *hypervisor, pl plan, sizes []size) ([]size, error) {
	select {
	case h.define <- struct{}{}:
		defer func() { <-h.define }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var last error
	err := h.use(ctx, func(l *link) error {
		free, all, err := h.room(l)
		if err != nil {
			return err
		}
		for len(sizes) > 0 {
			s := sizes[0]
			sizes = sizes[1:]
			if s.memory > free {
				of := ""
				if s.name != "" {
					of = "type " + s.name
				}
				last = &provider.Error{Kind: provider.Capacity, Scope: h.scope(of), Message: fmt.Sprintf(
					"%d MiB of memory are wanted, and %d of %d MiB are free", s.memory>>20, free>>20, all>>20)}
				continue
			}
			r := pl.record
			r.Type, r.Memory = s.name, s.memory
			text, err := p.definition(pl, s, r)
			if err != nil {
				return err
			}
			_, err = l.DomainDefineXMLFlags(text, 0)
			if is(err, api.ErrOperationFailed, api.ErrDomExist) && says(err, "already exists") {
				err = nil
			}
			last = err
			return err
		}
		return nil
	})
	if err == nil {
		err = last
	}
	return sizes, err
}

// room is how much memory is free for machines, and how much there is: what running domains may use
// is taken, and what our domains that were not started yet may take.
func (h *hypervisor) room(l *link) (free, all uint64, err error) {
	all = h.memory
	if all == 0 {
		_, kib, _, _, _, _, _, _, err := l.NodeGetInfo()
		if err != nil {
			return 0, 0, err
		}
		all = kib << 10
	}
	var taken uint64
	stats, err := l.ConnectGetAllDomainStats(nil, uint32(api.DomainStatsBalloon),
		uint32(api.ConnectGetAllDomainsStatsActive|api.ConnectGetAllDomainsStatsNowait))
	if err != nil {
		return 0, 0, err
	}
	counted := map[api.UUID]bool{}
	for _, s := range stats {
		counted[s.Dom.UUID] = true
		for _, p := range s.Params {
			if p.Field == api.DomainStatsBalloonMaximum {
				kib, _ := p.Value.I.(uint64)
				taken += kib << 10
			}
		}
	}
	waiting, _, err := domains(l, prefix) // domains that cannot be read do not matter here
	if err != nil {
		return 0, 0, err
	}
	for _, d := range waiting {
		if !counted[d.UUID] && d.down() && (d.Step == stepNew || d.Step == stepStarting || d.Step == stepRestarting) {
			taken += d.Memory
		}
	}
	if taken >= all {
		return 0, all, nil
	}
	return all - taken, all, nil
}

// complete brings a domain to its first start. An earlier attempt may have ended at any step.
func (p *Provider) complete(ctx context.Context, h *hypervisor, pl plan, d *domain) (done *domain, err error) {
	err = h.use(ctx, func(l *link) error {
		done, err = completeBy(l, pl, d)
		return err
	})
	if err == nil {
		return done, nil
	}
	// What it has failed for is kept for List.
	if kind := provider.KindOf(h.meaning(err, "")); kind == provider.Temporary && fromLibvirt(err) && ctx.Err() == nil {
		p.noteFailed(ctx, h, d, err)
	}
	return nil, err
}

func completeBy(l *link, pl plan, d *domain) (*domain, error) {
	now, err := read(l, d.Domain)
	if err != nil {
		return nil, err
	}
	// Another call has started it, or an earlier one of ours whose answer was lost. It may have
	// stopped since.
	if now.Step == stepStarted || now.Step == stepRestarting {
		return now, nil
	}
	if !now.down() || now.Step == stepStarting && now.hasRun() {
		return started(l, now)
	}
	for _, v := range append(pl.volumes, volume{name: pl.name + consoleSuffix, format: "raw"}) {
		if err := v.make(l, pl.pool); err != nil {
			return nil, err
		}
	}
	if now, err = change(l, d, func(r *record) { r.note(stepStarting) }); err != nil {
		return nil, err
	}
	return start(l, now)
}

// start starts a domain whose start was noted as intended, and notes that it has started.
func start(l *link, d *domain) (*domain, error) {
	_, err := l.DomainCreateWithFlags(d.Domain, 0)
	if err != nil && !(is(err, api.ErrOperationInvalid) && says(err, "already running")) {
		return nil, fmt.Errorf("start: %w", err)
	}
	return started(l, d)
}

func started(l *link, d *domain) (*domain, error) {
	if _, err := change(l, d, func(r *record) { r.note(stepStarted) }); err != nil {
		return nil, err
	}
	return read(l, d.Domain)
}

func (p *Provider) noteFailed(ctx context.Context, h *hypervisor, d *domain, why error) {
	err := h.use(ctx, func(l *link) error {
		now, err := read(l, d.Domain)
		if err != nil || !now.down() || now.Step == stepStarted {
			return err
		}
		_, err = change(l, d, func(r *record) {
			r.note(stepFailed)
			r.Why = why.Error()
		})
		return err
	})
	if err != nil {
		p.log.Warn("note that a domain did not start", "instance", d.Instance, "error", err)
	}
}

// removeUnstarted removes a domain that could not be started, and reports whether it is gone. One
// that runs by now is another call's.
func (p *Provider) removeUnstarted(ctx context.Context, h *hypervisor, k key, d *domain) (removed bool, err error) {
	err = h.use(ctx, func(l *link) error {
		now, err := look(l, k)
		if err != nil || now == nil || now.UUID != d.UUID {
			removed = err == nil
			return err
		}
		if !now.down() || now.hasRun() || now.Step == stepStarted {
			return nil
		}
		if err := clear(ctx, l, now.Pool, now.Name); err != nil {
			return err
		}
		err = undefine(l, now)
		removed = err == nil
		return err
	})
	return removed, err
}
