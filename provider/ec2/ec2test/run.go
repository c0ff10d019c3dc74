package ec2test

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"time"
)

const maxUserData = 16 << 10

// run is RunInstances, of one machine.
func (s *Server) run(q *query) (any, *fault) {
	want, f := s.wanted(q)
	if f != nil {
		return nil, f
	}
	zone := s.config.Subnets[want.subnet].Zone
	clientToken := q.text("ClientToken")
	if len(clientToken) > 64 {
		return nil, refuse("InvalidParameterValue", "Client token is longer than 64 characters")
	}
	if f := q.done(); f != nil {
		return nil, f
	}
	text := requestText(q.form)
	if t, is := s.tokens[zone+"/"+clientToken]; is && clientToken != "" {
		if t.request != text {
			return nil, refuse("IdempotentParameterMismatch",
				"The client token %s has already been used for a request with different parameters", clientToken)
		}
		if m := s.machines[t.machine]; m != nil {
			return launched(m), nil
		}
	}
	if f := s.refused(want, zone); f != nil {
		if s.config.RefusedBind {
			s.tokens[zone+"/"+clientToken] = token{request: text}
		}
		return nil, f
	}
	m := s.newMachine(want.subnet)
	m.typ, m.image, m.token, m.spot = want.typ, want.image, clientToken, want.spot
	m.endsByShutdown, m.tags, m.volumeTags, m.userData = want.endsByShutdown, want.tags, want.volumeTags, want.userData
	if n, limited := s.room[[2]string{m.typ, zone}]; limited {
		s.room[[2]string{m.typ, zone}] = n - 1
	}
	if clientToken != "" {
		s.tokens[zone+"/"+clientToken] = token{request: text, machine: m.id}
	}
	s.noteDoubles(m)
	if len(s.broken) > 0 {
		reason := s.broken[0]
		s.broken = s.broken[1:]
		m.launched = m.made
		m.after(s.config.BootTime, func() { m.remove(reason, reason+": launch failed") })
	} else {
		m.boot()
	}
	return launched(m), nil
}

// noteDoubles notes an instance that has another live machine already.
func (s *Server) noteDoubles(m *machine) {
	for _, other := range s.machines {
		if other != m && other.state != terminated && other.tags["leasehold:instance"] != "" &&
			other.tags["leasehold:instance"] == m.tags["leasehold:instance"] &&
			other.tags["leasehold:shard"] == m.tags["leasehold:shard"] {
			s.doubles[m.tags["leasehold:shard"]+"/"+m.tags["leasehold:instance"]] = true
		}
	}
}

func (s *Server) newMachine(subnet string) *machine {
	s.made++
	s.used[subnet]++
	m := &machine{
		s: s, id: fmt.Sprintf("i-%017x", s.made), subnet: subnet, made: time.Now(),
		address: fmt.Sprintf("10.%d.%d.%d", s.made>>16&255, s.made>>8&255, s.made&255),
	}
	s.machines[m.id] = m
	return m
}

// requestText is what has to be equal of two requests with one client token.
func requestText(form url.Values) string {
	same := url.Values{}
	for k, v := range form {
		if k != "ClientToken" {
			same[k] = v
		}
	}
	return same.Encode()
}

// wanted reads what a machine is to be, and refuses what EC2 would refuse of any account.
func (s *Server) wanted(q *query) (m machine, f *fault) {
	if q.number("MinCount") != 1 || q.number("MaxCount") != 1 {
		return m, refuse("InvalidParameterValue", "MinCount and MaxCount must be 1 here")
	}
	m.image, m.typ, m.subnet = q.text("ImageId"), q.text("InstanceType"), q.text("SubnetId")
	groups := q.list("SecurityGroupId")
	for _, n := range q.groups("NetworkInterface") {
		if m.subnet != "" || len(groups) > 0 {
			return m, refuse("InvalidParameterCombination",
				"Network interfaces and an instance-level subnet ID may not be specified on the same request")
		}
		m.subnet = q.text(n + "SubnetId")
		for _, name := range []string{"DeviceIndex", "AssociatePublicIpAddress", "DeleteOnTermination"} {
			q.text(n + name)
		}
		q.list(n + "SecurityGroupId")
	}
	template := q.text("LaunchTemplate.LaunchTemplateId") + q.text("LaunchTemplate.LaunchTemplateName")
	q.text("LaunchTemplate.Version")
	q.text("KeyName")
	q.text("IamInstanceProfile.Name")
	q.text("IamInstanceProfile.Arn")
	if _, is := s.config.Images[m.image]; !is && (m.image != "" || template == "") {
		return m, refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", m.image)
	}
	if _, is := s.config.Types[m.typ]; !is && (m.typ != "" || template == "") {
		return m, refuse("InvalidParameterValue", "Invalid value '%s' for InstanceType.", m.typ)
	}
	if _, is := s.config.Subnets[m.subnet]; !is {
		return m, refuse("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", m.subnet)
	}
	if q.text("MetadataOptions.HttpTokens") != "required" || q.text("MetadataOptions.HttpEndpoint") != "enabled" ||
		q.number("MetadataOptions.HttpPutResponseHopLimit") < 1 {
		return m, refuse("InvalidParameterValue", "This account requires IMDSv2")
	}
	for _, b := range q.groups("BlockDeviceMapping") {
		if device := q.text(b + "DeviceName"); device != s.config.Images[m.image] {
			return m, refuse("InvalidBlockDeviceMapping", "%s is not the root device of %s", device, m.image)
		}
		if q.text(b+"Ebs.DeleteOnTermination") != "true" || q.number(b+"Ebs.VolumeSize") < 1 {
			return m, refuse("InvalidBlockDeviceMapping", "the root disk needs a size, and must go with its machine")
		}
		q.text(b + "Ebs.VolumeType")
		q.text(b + "Ebs.Encrypted")
	}
	if m.userData, f = userData(q.text("UserData")); f != nil {
		return m, f
	}
	if f := wantedMarket(q, &m); f != nil {
		return m, f
	}
	for _, spec := range q.groups("TagSpecification") {
		tags := map[string]string{}
		for _, t := range q.groups(spec + "Tag") {
			key := q.text(t + "Key")
			if tags[key] = q.text(t + "Value"); len(tags) > 50 || strings.HasPrefix(key, "aws:") || len(key) > 128 {
				return m, refuse("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved; at most 50 tags of 128 characters")
			}
		}
		switch kind := q.text(spec + "ResourceType"); kind {
		case "instance":
			m.tags = tags
		case "volume":
			m.volumeTags = tags
		case "network-interface", "spot-instances-request":
		default:
			return m, refuse("InvalidParameterValue", "'%s' is not a valid taggable resource type", kind)
		}
	}
	return m, nil
}

func userData(text string) ([]byte, *fault) {
	data, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return nil, refuse("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	case len(data) > maxUserData:
		return nil, refuse("InvalidParameterValue", "User data is limited to %d bytes", maxUserData)
	}
	return data, nil
}

func wantedMarket(q *query, m *machine) *fault {
	m.spot = q.text("InstanceMarketOptions.MarketType") == "spot"
	kind := q.text("InstanceMarketOptions.SpotOptions.SpotInstanceType")
	interruption := q.text("InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior")
	m.endsByShutdown = q.text("InstanceInitiatedShutdownBehavior") == "terminate"
	if m.spot && (kind != "one-time" || interruption != "terminate" || !m.endsByShutdown) {
		return refuse("InvalidParameterCombination", "One-time Spot machines can only be terminated")
	}
	return nil
}

// refused is what this account, or this zone, has no room for.
func (s *Server) refused(want machine, zone string) *fault {
	processors, spots := s.config.Types[want.typ], 0
	for _, m := range s.machines {
		switch {
		case m.state == terminated || m.state == stopped:
		case m.spot:
			spots++
		default:
			processors += s.config.Types[m.typ]
		}
	}
	subnet := s.config.Subnets[want.subnet]
	room, limited := s.room[[2]string{want.typ, zone}]
	switch {
	case want.spot && s.config.Spots > 0 && spots >= s.config.Spots:
		return refuse("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
	case !want.spot && s.config.Processors > 0 && processors > s.config.Processors:
		return refuse("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows",
			s.config.Processors)
	case s.used[want.subnet] >= subnet.Free:
		return refuse("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s'", want.subnet)
	case limited && room < 0:
		return refuse("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).",
			want.typ, zone)
	case limited && room == 0:
		return &fault{500, "InsufficientInstanceCapacity", fmt.Sprintf(
			"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", want.typ, zone)}
	}
	return nil
}

type runResponse struct {
	XMLName xml.Name `xml:"http://ec2.amazonaws.com/doc/2016-11-15/ RunInstancesResponse"`
	reservation
}

func launched(m *machine) any {
	return runResponse{reservation: reservation{ID: "r-" + m.id[2:], Instances: []item{m.item(true)}}}
}
