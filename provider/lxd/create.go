package lxd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/provider"
	"github.com/leasehold/leasehold/provider/userdata"
)

// bootstrapPath is where the agent in a container finds its document.
const bootstrapPath = userdata.DocumentPath

// vendorData is what cloud-init runs beside the user data. Its scripts do not replace the scripts
// of a template's user data, nor are they replaced by them.
const vendorData = "cloud-init.vendor-data"

// Create makes the container, writes the bootstrap document into it and starts it. Called again, it
// completes what was interrupted, and else returns the container that is there, up or down.
func (p *Provider) Create(ctx context.Context, req provider.CreateRequest) (provider.Machine, error) {
	b := req.Bootstrap
	if b.Shard == "" || b.Instance == "" {
		return provider.Machine{}, fmt.Errorf("%w: the bootstrap document names no shard or no instance",
			provider.ErrInvalid)
	}
	if err := p.Validate(req.Template); err != nil {
		return provider.Machine{}, err
	}
	if req.Zone == "" {
		req.Zone = p.zoneNames()[0]
	}
	if _, is := p.zones[req.Zone]; !is {
		return provider.Machine{}, p.Validate(provider.Template{
			Zones: []string{req.Zone}, Settings: req.Template.Settings,
		})
	}
	var m provider.Machine
	err := p.locks.With(ctx, nameOf(b.Instance), func() error {
		c, err := p.create(ctx, req)
		if err == nil {
			m = c.machine(time.Now(), p.timeout)
		}
		return err
	})
	if err != nil {
		return provider.Machine{}, fmt.Errorf("create machine %s: %w", b.Instance, p.kindOf(err, req.Zone))
	}
	return m, nil
}

// create creates the container again, once, if LXD does not get the bootstrap document into it.
func (p *Provider) create(ctx context.Context, req provider.CreateRequest) (*container, error) {
	for again := false; ; again = true {
		c, err := p.createOnce(ctx, req)
		if again || !errors.Is(err, errHangs) || !c.neverStarted() {
			return c, err
		}
		p.log.Warn("a container takes no files, so it is created again", "instance", req.Bootstrap.Instance, "error", err)
		if err := p.discard(ctx, c); err != nil {
			return c, err
		}
	}
}

func (p *Provider) createOnce(ctx context.Context, req provider.CreateRequest) (*container, error) {
	b := req.Bootstrap
	name := nameOf(b.Instance)
	c, ok, err := p.look(ctx, name)
	if err != nil {
		return nil, err
	}
	if !ok {
		refused := p.make(ctx, req)
		if refused != nil && !hasMeaning(refused, taken) {
			return nil, refused
		}
		if c, ok, err = p.look(ctx, name); err != nil {
			return nil, err
		} else if !ok {
			return nil, cmp.Or(refused, errVanished) // what exists already may be another thing, such as a volume
		}
	}
	if !c.isOf(b.Shard, b.Instance) {
		return nil, fmt.Errorf("LXD has a container %s that is not this instance's (shard %q, "+
			"instance %q by its tags): rename or remove it",
			name, c.Config[tagShard], c.Config[tagInstance])
	}
	if what, _ := c.step(); what == stepStarted {
		return c, nil
	}
	// The call that began this container may have died while LXD still unpacks its image.
	if err := p.awaitCreation(ctx, name); err != nil {
		return nil, err
	}
	return p.complete(ctx, c, b)
}

// make asks LXD for the container, and waits until it is there. It is marked as new from its first
// moment on.
func (p *Provider) make(ctx context.Context, req provider.CreateRequest) error {
	body, err := p.describe(req, time.Now())
	if err != nil {
		return err
	}
	query := url.Values{}
	if target := p.zones[req.Zone]; target != "" {
		query.Set("target", target)
	}
	return retry(ctx, func() error {
		_, err := p.client.call(ctx, request{
			method: http.MethodPost, path: "/1.0/instances", query: query, body: body,
		}, nil)
		return ofTemplate(err)
	})
}

// instancesPost is LXD's request for a container.
type instancesPost struct {
	Name     string                       `json:"name"`
	Type     string                       `json:"type"`
	Source   map[string]string            `json:"source"`
	Profiles []string                     `json:"profiles,omitempty"` // a list, or the default
	Config   map[string]string            `json:"config"`
	Devices  map[string]map[string]string `json:"devices"`
}

// withoutProfiles is the same with an empty list of profiles, which is not the default.
type withoutProfiles struct {
	instancesPost
	Profiles []string `json:"profiles"`
}

// describe is what LXD is to make of a request.
func (p *Provider) describe(req provider.CreateRequest, now time.Time) (any, error) {
	s, err := p.readSettings(req.Template.Settings)
	if err != nil {
		return nil, err
	}
	b := req.Bootstrap
	config := map[string]string{
		tagShard: b.Shard, tagInstance: b.Instance, tagGroup: b.Group, tagZone: req.Zone,
		tagTemplate: templateHash(req.Template), keyPatience: b.StopTimeout, keyStep: noteOf(stepNew, now),
	}
	for k, v := range req.Template.Tags {
		config["user."+k] = v
	}
	script, err := userdata.Installer(b, req.Agent)
	if err != nil {
		return nil, err
	}
	config[vendorData] = script // an image without cloud-init ignores it
	for k, v := range s.Config {
		config[k] = v
	}
	if s.CPU > 0 {
		config["limits.cpu"] = strconv.Itoa(s.CPU)
	}
	if s.Memory != "" {
		config["limits.memory"] = s.Memory
	}
	devices := map[string]map[string]string{}
	if p.pool != "" {
		root := map[string]string{"type": "disk", "path": "/", "pool": p.pool}
		if s.Disk != "" {
			root["size"] = s.Disk
		}
		devices["root"] = root
	}
	switch n := s.Network; {
	case n.None:
		devices["eth0"] = map[string]string{"type": "none"}
	case n.Bridge != "":
		devices["eth0"] = map[string]string{"type": "nic", "nictype": "bridged", "parent": n.Bridge, "name": "eth0"}
	case n.Managed != "":
		devices["eth0"] = map[string]string{"type": "nic", "network": n.Managed, "name": "eth0"}
	}
	post := instancesPost{
		Name: nameOf(b.Instance), Type: "container", Source: sourceOf(s.Image), Profiles: s.Profiles, Config: config,
		Devices: devices,
	}
	if s.Profiles != nil && len(s.Profiles) == 0 {
		return withoutProfiles{post, []string{}}, nil
	}
	return post, nil
}

// sourceOf takes what looks like a whole fingerprint for one, and anything else for an alias.
func sourceOf(image string) map[string]string {
	const fingerprint = 64
	if len(image) == fingerprint && !strings.ContainsFunc(image, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f')
	}) {
		return map[string]string{"type": "image", "fingerprint": image}
	}
	return map[string]string{"type": "image", "alias": image}
}

// awaitCreation waits for what LXD itself still does to make a container.
func (p *Provider) awaitCreation(ctx context.Context, name string) error {
	var all map[string][]operation
	if _, err := p.client.call(ctx, request{
		method: http.MethodGet, path: "/1.0/operations", query: url.Values{"recursion": {"1"}},
	}, &all); err != nil {
		return err
	}
	for _, op := range all["running"] {
		if !strings.HasPrefix(op.Description, "Creating") || !slices.ContainsFunc(
			append(op.Resources["instances"], op.Resources["containers"]...), func(of string) bool {
				of, _, _ = strings.Cut(of, "?")
				return strings.HasSuffix(of, "/"+name)
			}) {
			continue
		}
		// Its outcome shows in the container.
		if err := p.client.await(ctx, "/1.0/operations/"+url.PathEscape(op.ID)); ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// complete brings a container to its first start. An earlier attempt may have ended at any step.
func (p *Provider) complete(ctx context.Context, c *container, b provider.Bootstrap) (*container, error) {
	for {
		if c.up() {
			// Another call has started it, or ours whose answer was lost.
			return p.noteStarted(ctx, c)
		}
		// The document comes before the intent to start: a container that takes none is still
		// marked as new, and so may be created again.
		if err := p.push(ctx, c.Name, b); err != nil {
			return c, err
		}
		now, err := p.note(ctx, c, map[string]string{keyStep: noteOf(stepStarting, time.Now()), keyWhy: ""})
		if err == nil {
			return p.startUp(ctx, now)
		}
		if !hasMeaning(err, changed) {
			return c, err
		}
		if c, err = p.again(ctx, c); err != nil {
			return c, err
		}
		if what, _ := c.step(); what == stepStarted {
			return c, nil
		}
	}
}

// discard removes a container that was never started. Noting the step again compares that no other
// call has begun a start since the container was read; LXD itself refuses to delete one that runs.
func (p *Provider) discard(ctx context.Context, c *container) error {
	c, err := p.again(ctx, c)
	if err == nil && c.neverStarted() {
		if _, err = p.note(ctx, c, map[string]string{keyStep: noteOf(stepNew, time.Now())}); err == nil {
			err = p.remove(ctx, c.Name)
		}
	}
	if hasMeaning(err, changed) || hasMeaning(err, running) {
		return nil // another call goes on with it, and so does ours
	}
	return gone(err)
}

// again reads a container again; it is an error if it is gone.
func (p *Provider) again(ctx context.Context, c *container) (*container, error) {
	now, ok, err := p.look(ctx, c.Name)
	if err != nil {
		return c, err
	}
	if !ok || !now.isOf(c.Config[tagShard], c.Config[tagInstance]) {
		return c, errVanished
	}
	return now, nil
}

// push writes the bootstrap document. It holds the join token: only root in the container may read
// it.
func (p *Provider) push(ctx context.Context, name string, b provider.Bootstrap) error {
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("write bootstrap document: %w", err)
	}
	dir := bootstrapPath[:strings.LastIndex(bootstrapPath, "/")]
	for _, f := range []struct {
		path, kind, mode string
		content          []byte
	}{
		{dir, "directory", "0700", nil},
		{bootstrapPath, "file", "0600", append(data, '\n')},
	} {
		r := request{
			method: http.MethodPost, path: path(name) + "/files", query: url.Values{"path": {f.path}}, raw: f.content,
			header: http.Header{
				"X-Lxd-Type": {f.kind}, "X-Lxd-Mode": {f.mode}, "X-Lxd-Uid": {"0"}, "X-Lxd-Gid": {"0"},
				"X-Lxd-Write": {"overwrite"},
				// Incus has headers of its own.
				"X-Incus-Type": {f.kind}, "X-Incus-Mode": {f.mode}, "X-Incus-Uid": {"0"}, "X-Incus-Gid": {"0"},
				"X-Incus-Write": {"overwrite"},
			},
		}
		err := retry(ctx, func() error { return p.pushOne(ctx, r) })
		if err != nil && !(f.kind == "directory" && hasMeaning(err, taken)) {
			return fmt.Errorf("write bootstrap document: %w", err)
		}
	}
	return nil
}

// pushTimeout is far longer than LXD needs for a file. Its server of files, which it starts for
// each container again, hangs now and then, and mostly does not when it is asked again.
const (
	pushTimeout = 10 * time.Second
	pushTries   = 2
)

var errHangs = fmt.Errorf("LXD's server of files (forkfile) gave no answer within %s, %d times", pushTimeout, pushTries)

func (p *Provider) pushOne(ctx context.Context, r request) error {
	for range pushTries {
		limited, cancel := context.WithTimeout(ctx, pushTimeout)
		_, err := p.client.call(limited, r, nil)
		hangs := err != nil && limited.Err() != nil
		cancel()
		if !hangs || ctx.Err() != nil {
			return err
		}
	}
	return errHangs
}
