package openstacktest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
)

// ids of what there is beside servers.
var (
	flavorIDs  = map[string]string{Flavor: "1", LargeFlavor: "2"}
	imageIDs   = map[string]string{Image: "11111111-1111-4111-8111-111111111111"}
	networkIDs = map[string]string{
		Network: "22222222-2222-4222-8222-222222222222", SmallNetwork: "33333333-3333-4333-8333-333333333333",
	}
)

// NetworkID is the ID of a network.
func NetworkID(name string) string { return networkIDs[name] }

func (c *Cloud) flavors(w http.ResponseWriter, _ *http.Request) {
	all := []any{}
	for _, name := range slices.Sorted(maps.Keys(flavorIDs)) {
		all = append(all, map[string]any{"id": flavorIDs[name], "name": name})
	}
	answer(w, http.StatusOK, map[string]any{"flavors": all})
}

func (c *Cloud) images(w http.ResponseWriter, r *http.Request) {
	all := []any{}
	if id := imageIDs[r.URL.Query().Get("name")]; id != "" {
		all = append(all, map[string]any{
			"id": id, "name": r.URL.Query().Get("name"), "status": "active",
			"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
		})
	}
	answer(w, http.StatusOK, map[string]any{"images": all})
}

func (c *Cloud) networks(w http.ResponseWriter, _ *http.Request) {
	all := []any{}
	for _, name := range slices.Sorted(maps.Keys(networkIDs)) {
		all = append(all, map[string]any{"id": networkIDs[name], "name": name, "status": "ACTIVE"})
	}
	answer(w, http.StatusOK, map[string]any{"networks": all})
}

func (c *Cloud) availability(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	free, known := c.Availability[r.PathValue("network_id")]
	if !known {
		Refuse(w, http.StatusNotFound, "The resource could not be found.") // Neutron's word for forbidden
		return
	}
	answer(w, http.StatusOK, map[string]any{"network_ip_availability": map[string]any{
		"total_ips": free + 10,
		"used_ips":  10,
	}})
}

// shown is a server as the API shows it.
func (c *Cloud) shown(s *Server) map[string]any {
	if c.Hidden[s.ID] {
		return map[string]any{"id": s.ID, "status": "UNKNOWN", "tenant_id": Project, "created": "2026-01-01T00:00:00Z"}
	}
	var task, launched any
	if s.Task != "" {
		task = s.Task
	}
	if s.Launched {
		launched = "2026-01-01T00:00:00.000000"
	}
	out := map[string]any{
		"id": s.ID, "name": s.Name, "status": s.Status, "metadata": s.Metadata, "OS-EXT-STS:task_state": task,
		"OS-SRV-USG:launched_at": launched, "OS-EXT-STS:power_state": s.Power, "image": map[string]any{"id": s.Image},
		"addresses": map[string]any{},
	}
	if s.Address != "" {
		out["addresses"] = map[string]any{"net": []any{map[string]any{
			"addr": s.Address, "version": 4, "OS-EXT-IPS:type": "fixed",
		}}}
	}
	if s.Fault != "" {
		out["fault"] = map[string]any{"message": s.Fault, "code": 500}
	}
	return out
}

func (c *Cloud) show(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.server1(w, r); s != nil {
		answer(w, http.StatusOK, map[string]any{"server": c.shown(s)})
	}
}

// server1 is the server that a request is about; nil: it was answered.
func (c *Cloud) server1(w http.ResponseWriter, r *http.Request) *Server {
	s := c.find(r.PathValue("id"))
	if s == nil {
		Refuse(w, http.StatusNotFound, "Instance "+r.PathValue("id")+" could not be found.")
	}
	return s
}

// list has the newest first. With a filter or a marker it leaves out what a part that is down
// holds.
func (c *Cloud) list(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	query := r.URL.Query()
	name, err := regexp.Compile(query.Get("name"))
	if err != nil {
		Refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	marker := query.Get("marker")
	if marker != "" && c.find(marker) == nil {
		Refuse(w, http.StatusBadRequest, "marker ["+marker+"] not found")
		return
	}
	page, links := []any{}, []any{}
	begun := marker == ""
	for _, s := range slices.Backward(c.servers) {
		switch {
		case !begun:
			begun = s.ID == marker
		case !name.MatchString(s.Name), c.Hidden[s.ID] && len(query) > 0:
		default:
			page = append(page, c.shown(s))
		}
		if len(page) == c.Page {
			links = append(links, map[string]any{"rel": "next", "href": c.URL + "/compute/v2.1/servers/detail?marker=" + s.ID})
			break
		}
	}
	body := map[string]any{"servers": page}
	if len(links) > 0 {
		body["servers_links"] = links
	}
	answer(w, http.StatusOK, body)
}

func (c *Cloud) create(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Server struct {
			Name, ImageRef, FlavorRef string
			Zone                      string `json:"availability_zone"`
			Key                       string `json:"key_name"`
			UserData                  string `json:"user_data"`
			ConfigDrive               bool   `json:"config_drive"`
			Metadata                  map[string]string
			Networks                  any
			SecurityGroups            []struct{ Name string } `json:"security_groups"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		Refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	b := body.Server
	data, err := base64.StdEncoding.DecodeString(b.UserData)
	const maxUserData = 65535
	switch {
	case err != nil || len(b.UserData) > maxUserData:
		Refuse(w, http.StatusBadRequest, "Invalid input for field/attribute user_data.")
		return
	case b.Networks == nil:
		Refuse(w, http.StatusBadRequest, "Invalid input for field/attribute server. 'networks' is a required property")
		return
	case !slices.Contains(slices.Collect(maps.Values(imageIDs)), b.ImageRef):
		Refuse(w, http.StatusBadRequest, "Can not find requested image")
		return
	case b.Zone != "" && b.Zone != "nova":
		Refuse(w, http.StatusBadRequest, "The requested availability zone is not available")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Quota > 0 && len(c.servers) >= c.Quota {
		Refuse(w, http.StatusForbidden, fmt.Sprintf("Quota exceeded for instances: Requested 1, "+
			"but already used %d of %d instances",
			len(c.servers), c.Quota))
		return
	}
	s := &Server{
		ID: newID(), Name: b.Name, Status: "BUILD", Task: "scheduling", Flavor: b.FlavorRef, UserData: string(data),
		Metadata: b.Metadata, Networks: b.Networks, Image: b.ImageRef, Key: b.Key, Zone: b.Zone, ConfigDrive: b.ConfigDrive,
	}
	for _, g := range b.SecurityGroups {
		s.SecurityGroups = append(s.SecurityGroups, g.Name)
	}
	c.servers = append(c.servers, s)
	c.after(func() { c.schedule(s) })
	answer(w, http.StatusAccepted, map[string]any{"server": map[string]any{"id": s.ID}})
}

func (c *Cloud) schedule(s *Server) {
	fault := ""
	for name := range c.Full {
		if flavorIDs[name] == s.Flavor {
			fault = "No valid host was found. There are not enough hosts available."
		}
	}
	for name := range c.NoAddress {
		if list, is := s.Networks.([]any); is && fault == "" {
			for _, n := range list {
				if of, _ := n.(map[string]any); of["uuid"] == networkIDs[name] {
					fault = "No fixed IP addresses available for network: " + name
				}
			}
		}
	}
	if fault != "" {
		s.Status, s.Task, s.Fault = "ERROR", "", fault
		return
	}
	s.Task = "spawning"
	c.after(func() { c.up(s) })
}

// up has a server run, unless it was deleted meanwhile.
func (c *Cloud) up(s *Server) {
	if c.find(s.ID) == nil || s.Task == "deleting" || c.closed {
		return
	}
	s.boot++
	if c.Boot != nil {
		boot := s.boot
		end, err := c.Boot(*s, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if s.boot == boot && s.Status == "ACTIVE" {
				s.Status, s.Power, s.end = "SHUTOFF", 4, nil
			}
		})
		if err != nil {
			s.Status, s.Task, s.Fault = "ERROR", "", err.Error()
			return
		}
		s.end = end
	}
	s.Status, s.Task, s.Power, s.Launched, s.Address = "ACTIVE", "", 1, true, "127.0.0.1"
}

// halt ends what runs in a server, without the lock held, and goes on in the background.
func (c *Cloud) halt(s *Server, hard bool, then func()) {
	end := s.end
	s.end = nil
	s.boot++
	c.timers.Add(1)
	go func() {
		defer c.timers.Done()
		if end != nil {
			end(hard)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.after(then)
	}()
}

func (c *Cloud) remove(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.server1(w, r)
	if s == nil {
		return
	}
	s.Task = "deleting"
	c.halt(s, true, func() { c.drop(s.ID) })
	w.WriteHeader(http.StatusNoContent)
}

func (c *Cloud) setMetadata(w http.ResponseWriter, r *http.Request) {
	var body struct{ Metadata map[string]string }
	err := json.NewDecoder(r.Body).Decode(&body)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.server1(w, r)
	switch {
	case s == nil:
		return
	case err != nil:
		Refuse(w, http.StatusBadRequest, err.Error())
		return
	case s.Status == "ERROR" || s.Status == "BUILD":
		Refuse(w, http.StatusConflict, "Cannot 'update metadata' while it is in vm_state "+s.Status)
		return
	}
	s.Metadata = maps.Clone(s.Metadata)
	maps.Copy(s.Metadata, body.Metadata)
	answer(w, http.StatusOK, map[string]any{"metadata": s.Metadata})
}

func (c *Cloud) action(w http.ResponseWriter, r *http.Request) {
	var body map[string]json.RawMessage
	err := json.NewDecoder(r.Body).Decode(&body)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.server1(w, r)
	if s == nil {
		return
	}
	if err != nil || len(body) != 1 {
		Refuse(w, http.StatusBadRequest, "There is no such action")
		return
	}
	for what := range body {
		c.calls[what]++
		conflict := func(in bool) bool {
			if in || s.Task != "" {
				Refuse(w, http.StatusConflict, fmt.Sprintf("Cannot '%s' instance %s while it is in vm_state %s", what, s.ID,
					s.Status))
				return true
			}
			return false
		}
		switch what {
		case "os-getConsoleOutput":
			answer(w, http.StatusOK, map[string]any{"output": s.Console})
			return
		case "os-start":
			if conflict(s.Status != "SHUTOFF") {
				return
			}
			s.Task = "powering-on"
			c.after(func() { c.up(s) })
		case "os-stop":
			if conflict(s.Status != "ACTIVE") {
				return
			}
			s.Task = "powering-off"
			c.halt(s, false, func() {
				if s.Task == "powering-off" {
					s.Status, s.Task, s.Power = "SHUTOFF", "", 4
				}
			})
		case "reboot":
			if conflict(s.Status != "ACTIVE" && s.Status != "SHUTOFF" && s.Status != "ERROR") {
				return
			}
			s.Status, s.Task = "HARD_REBOOT", "reboot_started_hard"
			c.halt(s, true, func() { c.up(s) })
		default:
			Refuse(w, http.StatusBadRequest, "There is no such action: "+what)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}
}
