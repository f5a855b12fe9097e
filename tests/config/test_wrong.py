"""Every wrong setting is named with its value and what is allowed, in one line without secrets."""

from pathlib import Path

import pytest

from fluxplain.config import load_config
from fluxplain.config.base import ConfigError
from fluxplain.config.stream_settings import SHARED
from tests.kit.loading import SECRET, SMALLEST, Refused

WRONG = """
features = {a = "number"} => features.a & 'categorical'
features = {} => features & at least 1
seed = -1 => seed & -1 & equal to 0
explian.alpha = 0.1 => explian is not a setting & explain & drift
label.type = 'float' => label.type & 'float' & 'boolean' & 'number'
topics.prefix = 'a b' => topics.prefix & 'a b' & pattern
checkpoint.store = 'topic' => checkpoint.store is 'topic' & FLUXPLAIN_CHECKPOINT__KEY & key_file
checkpoint.key_file = 'secret' => checkpoint.key_file secret has 12 characters & at least 32

model.factory = "river" => model.factory & 'river' & module:name
model.file = 'x' => model.factory and file are both set
model.shards = 3 => model.shards is 3 & number of features, groups and pairs that are explained, 2
model.factory = 'river.forest:ARFClassifier'; model.params = {trees = 3} =>
  model.factory & model.params & 'river.forest:ARFClassifier' & 'trees': 3
model.factory = 'no.such.module:thing' => model.factory & no.such.module:thing & cannot import
model.factory = 'fluxplain.explain.losses:no' => model.factory & fluxplain.explain.losses has no no
model.factory = 'fluxplain.explain.losses:LOSSES' => model.factory & not a function or class
model.factory = 'tests.config.test_references:Mute' => model.factory & Mute & no predict_one
model.factory = 'tests.config.test_references:Unteachable' => model.factory & no learn_one
model.factory = 'tests.config.test_references:Glued' => model.factory & Glued & cannot be pickled
model.factory = 'tests.config.test_references:breaks' => model.factory & RuntimeError: out of order
model.factory = 'river.linear_model:LinearRegression' => model.factory & gives a regressor & boolean
label.type = 'number'; explain.loss = 'squared_error' => model.factory & gives a classifier

missing.features.town = 'skip' => missing.features has 'town' & features only: age, city
missing.values.age = 3 => missing.values.age is 3 & 'dead-letter' & 'impute'
missing.policy = 'impute'; missing.values.age = 'x' => missing.values.age is 'x' & finite number
missing.policy = 'impute'; missing.values.city = 0.5 => missing.values.city is 0.5 & a string

dashboard.port = 9400; dashboard.metrics_port = 9400 =>
  dashboard.metrics_port is 9400 & dashboard.port is the same

dashboard.features = {aeg = "Age"} =>
  dashboard.features has 'aeg' & what is explained only: age, city & did you mean 'age'?
dashboard.features = {age = "X", city = "X"} =>
  dashboard.features shows 'city' as 'X' & 'age' has that name already
dashboard.features = {age = "city"} =>
  dashboard.features shows 'age' as 'city' & 'city' has that name already
dashboard.features = {age = "city", city = "age"} =>
  dashboard.features shows 'age' as 'city' & 'city' has that name already
explain.ipdp.pairs = [['age', 'city']]; dashboard.features = {age = "A", "age|city" = "A"} =>
  dashboard.features shows 'age|city' as 'A' & 'age' has that name already
dashboard.units = {town = "km"} => dashboard.units has 'town' & features only: age, city

explain.alpha = 0.0 => explain.alpha is 0.0 & above 0 and at most 1
explain.alpha = [] => explain.alpha is [] & a list of such numbers
explain.alpha = [0.1, 2] => explain.alpha is [0.1, 2] & above 0 and at most 1
explain.alpha = [0.1, 0.1] => explain.alpha is [0.1, 0.1] & each once
explain.alpha = [0.1, true] => explain.alpha is [0.1, True] & numbers
explain.alpha = nan => explain.alpha & nan
explain.alhpa = 0.1 => explain.alhpa is not a setting; did you mean alpha? & emit_every
explain.every = 0 => explain.every & greater than or equal to 1
explain.budget_ms = 3 => explain.budget_ms is 3 & control.topic = true
explain.methods = [] => explain.methods & [] & at least 1
explain.methods = ['shap'] => explain.methods.0 & 'shap' & 'ipfi' & 'isage' & 'ipdp'
explain.features.town = ['ipfi'] => explain.features.town is no feature & age, city
explain.methods = ['ipfi']; explain.features.age = ['ipdp'] =>
  explain.features.age has 'ipdp' & methods of explain.methods only: ipfi
explain.groups.x = ['age']; explain.features.x = ['ipdp'] => explain.features.x & explains no group
explain.groups.x = ['age']; explain.features.age = ['ipfi'] => explain.features.age & its group
explain.loss = 'hinge' => explain.loss & 'hinge' & cross_entropy, zero_one, brier
explain.loss = 'no.such.module:thing' => explain.loss & no.such.module:thing & cannot import
explain.loss = 'crossentropy' => explain.loss is 'crossentropy' & did you mean 'cross_entropy'?
model.factory = 'river.forrest:ARFClassifier' => did you mean forest?
model.factory = 'rivr.forest:ARFClassifier' => did you mean river?
model.factory = 'river.forest:ARFClassifier'; model.params = {n_model = 3} =>
  model.factory & did you mean 'n_models'?
drift.detector = 'adwim' => drift.detector is 'adwim' & did you mean 'adwin'?
drift.detector = 'adwin'; drift.params.clocks = 8 => drift.params.clocks & did you mean clock?
missing.features.Age = 'skip' => missing.features has 'Age' & did you mean 'age'?
kafka.bootstrap_servers = '127.0.0.1' =>
  kafka.bootstrap_servers is '127.0.0.1' & must be host:port, as 127.0.0.1:9092
kafka.bootstrap_servers = 'a:9092, b' => must be host:port, as b:9092
kafka.bootstrap_servers = 'b:9092/ns' => must be host:port, of several brokers
explain.loss = 'json:loads.x' => explain.loss & json has no loads.x
explain.loss = 'json:JSONDecoder' => explain.loss & a function of (label, output)
explain.loss = 'absolute_error' => explain.loss & 'boolean' & cross_entropy, zero_one, brier
label.type = 'number'; explain.loss = 'brier' => 'number' & absolute_error, squared_error
label.type = 'number'; explain.loss = 'cross_entropy' =>
  explain.loss is 'cross_entropy' & absolute_error, squared_error
label.type = 'none'; explain.loss = 'cross_entropy' => explain.loss is 'cross_entropy' & minus_score

explain.ipfi.size = 3 => explain.ipfi.size is not a setting & reservoir_size
explain.ipfi.reservoir_size = 2.5 => explain.ipfi.reservoir_size & 2.5 & integer
explain.ipfi.warm_up = 101 => explain.ipfi.warm_up is 101 & at most & 100
explain.isage.warm_up = 200 => explain.isage.warm_up is 200 & at most & 100
explain.isage.inner_samples = -1 => explain.isage.inner_samples is -1 & 1 to 1,000
explain.isage.inner_samples = true => explain.isage.inner_samples is true & 1 to 1,000
explain.ipfi.inner_samples = 'some' => explain.ipfi.inner_samples is 'some' & 'all'
explain.isage.imputer = 'product'; explain.isage.inner_samples = 'all' =>
  explain.isage.inner_samples is 'all' & must be a number & 'product'
explain.ipfi.imputer = 'observational'; explain.ipfi.inner_samples = 'all' =>
  explain.ipfi.inner_samples is 'all' & must be a number & 'observational'
explain.ipfi.imputer = 'observational'; explain.ipfi.sampler = 'window' =>
  explain.ipfi.sampler is 'window' & 'geometric' & 'observational'

explain.groups.place = [] => explain.groups.place is [] & at least 1
explain.groups.place = 'age' => explain.groups.place is 'age' & list
explain.groups.age = ['city'] => explain.groups.age has the name of a feature
explain.groups.place = ['age', 'zip'] => explain.groups.place has 'zip' & features only: age, city
explain.groups.place = ['age', 'city']; explain.groups.home = ['city'] =>
  explain.groups.home has 'city' & explain.groups.place has already
explain.groups.place = ['age', 'age'] => explain.groups.place has 'age' & once
explain.methods = ['ipdp']; explain.groups.both = ['age', 'city'] =>
  explain.groups & explain.methods is ['ipdp']

explain.ipdp.warm_up = 101 => explain.ipdp.warm_up is 101 & [1, 100]
explain.ipdp.grid = 'range'; explain.ipdp.window = 20; explain.ipdp.warm_up = 21 =>
  explain.ipdp.warm_up is 21 & [1, 20]
explain.ipdp.ice = 20; explain.ipdp.grid_size = 500 =>
  explain.ipdp.ice is 20 & at most 19 & grid_size = 500 & message
explain.ipdp.grid = 'quantiles'; explain.ipdp.window = 50 =>
  explain.ipdp.window is 50 & 'range' & 'quantiles'
explain.ipdp.grid_size = 101; explain.ipdp.pairs = [['age', 'city']] =>
  explain.ipdp.pairs & 'age|city' & 101 times 100 points & at most 10,000
explain.methods = ['ipfi']; explain.ipdp.pairs = [['age', 'city']] =>
  explain.ipdp.pairs & explain.methods is ['ipfi']
explain.ipdp.pairs = [['age', 'ci|ty']] =>
  explain.ipdp.pairs has ('age', 'ci|ty') & names must not contain '|'
explain.ipdp.pairs = [['age', 'age']] => explain.ipdp.pairs has ('age', 'age') & two different
explain.ipdp.pairs = [['age', 'city'], ['city', 'age']] =>
  explain.ipdp.pairs has ('city', 'age') more than once
explain.ipdp.pairs = [['age', 'town']] => explain.ipdp.pairs has 'town' & features only: age, city
explain.ipdp.pairs = ['age'] => explain.ipdp.pairs.0 & 'age'
explain.ipdp.pairs = [['age']] => explain.ipdp.pairs.0.1 is missing
features = {a = "numeric", b = "numeric", "a|b" = "numeric"}; explain.ipdp.pairs = [['a', 'b']] =>
  explain.ipdp.pairs has ['a', 'b'] & 'a|b'

drift.shap.delta = 0.1 => drift.shap is not a setting & ipfi & loss
drift.loss.signal = 'value' => drift.loss.signal is not a setting & detector
drift.loss.enabled = 'perhaps' => drift.loss.enabled & 'perhaps' & boolean
drift.detector = 'ddm' => drift.detector is 'ddm' & 'adwin' & 'page_hinkley' & 'module:Class'
drift.detector = 'river.drift.binary:DDM' => drift.detector & 'adwin' & 'page_hinkley'
drift.ipfi.detector = 'fhddm' => drift.ipfi.detector & 'fhddm' & 'kswin'
drift.loss.detector = 'ddm' =>
  drift.loss.detector is 'ddm' & explain.loss must be 'zero_one' & 'cross_entropy'
drift.detector = 'adwin'; drift.params.clock = 0 => drift.params.clock is 0 & equal to 1
drift.detector = 'adwin'; drift.params.clock = 'often' => drift.params.clock is 'often' & integer
drift.detector = 'adwin'; drift.params.max_buckets = 0 => drift.params.max_buckets is 0 & equal to 1
drift.detector = 'adwin'; drift.params.max_buckets = 1001 =>
  drift.params.max_buckets is 1001 & equal to 1000
drift.detector = 'adwin'; drift.params.grace_period = 5 =>
  drift.params.grace_period belongs next to params
drift.detector = 'adwin'; drift.params.threshold = 1 =>
  drift.params.threshold is not a parameter of 'adwin' & clock, max_buckets
drift.params.false_alarms = 2 => drift.params.false_alarms belongs next to params
drift.params.clock = 8 => drift.params.clock is not a parameter of 'glr' & nothing
drift.false_alarms = 0 => drift.false_alarms is 0 & greater than or equal
drift.min_effect = 1 => drift.min_effect is 1 & less than 1
drift.detector = 'adwin'; drift.input.enabled = false; drift.output.enabled = false; \
  drift.false_alarms = 2 =>
  drift.false_alarms is 2 & 'glr' & 'adwin'
drift.delta = 0.1 => drift.delta is 0.1 & 'adwin' & 'glr'
drift.isage.detector = 'kswin'; drift.isage.params.window_size = 50 =>
  drift.isage.params.stat_size is 30 & at most half of window_size, 50
drift.ipdp.detector = 'kswin'; drift.ipdp.params.alpha = 1.5 =>
  drift.ipdp.params.alpha is 1.5 & less than 1
drift.ipdp.detector = 'kswin'; drift.ipdp.params.window = [] =>
  drift.ipdp.params.window is not a parameter of 'kswin' & alpha, window_size, stat_size
explain.loss = 'zero_one'; drift.loss.detector = 'eddm'; drift.loss.params.beta = 0.97 =>
  drift.loss.params.beta is 0.97 & less than or equal to 0.95
drift.loss.detector = 'page_hinkley'; drift.loss.params.mode = 'sideways' =>
  drift.loss.params.mode is 'sideways' & 'up', 'down' or 'both'
drift.ipdp.detector = 'kswin'; drift.ipdp.delta = 0.1 =>
  drift.ipdp.delta is 0.1 & 'adwin' & 'kswin' & params
drift.detector = 'page_hinkley'; drift.delta = 0.01 =>
  drift.delta is 0.01 & 'adwin' & 'page_hinkley' & params
drift.detector = 'river.drift:Nothing' => drift.ipfi & 'river.drift:Nothing' & has no Nothing
drift.ipdp.detector = 'river.drift:NoDrift'; drift.ipdp.params.x = 1 =>
  drift.ipdp & 'river.drift:NoDrift' & {'x': 1} & unexpected keyword argument 'x'
drift.isage.detector = 'fractions:Fraction' => drift.isage & update(x) and drift_detected
drift.ipfi.detector = 'tests.config.test_references:Glued' => drift.ipfi & Glued & local object
drift.loss.detector = 'river.drift.binary:FHDDM' => drift.loss & FHDDM & errors fall
drift.ipfi.detector = 'tests.config.test_references:OfErrors' => drift.ipfi & OfErrors & zero_one
drift.loss.detector = 'tests.config.test_references:OfErrors' => drift.loss & OfErrors & zero_one

streams.3.explain.alpha = 5 => streams.3.explain.alpha is 5 & above 0 and at most 1
streams.3.explain.alhpa = 1 => streams.3.explain.alhpa & did you mean alpha?
streams.3.explain.ipfi = 5 => streams.3.explain.ipfi is 5
streams.3.explain.ipfi.warm_up = 500 => streams.3.explain.ipfi.warm_up is 500 & 100
streams.3.explain.loss = 'hinge' => streams.3.explain.loss is 'hinge' & brier
streams.3.drift.loss.detector = 'ddm' => streams.3.drift.loss.detector & 'zero_one'
streams.3.drift.detector = 'json:loads' => streams.3.drift.ipfi & json:loads
streams.3.missing.values.age = 3 => streams.3.missing.values.age is 3 & 'impute'
streams.3.model.factory = 'no.such:Model' => streams.3.model.factory & cannot import
streams.3.model.params.trees = 3 => streams.3.model.factory & 'trees': 3
streams.3.model.factory = 'river.linear_model:LinearRegression' =>
  streams.3.model.factory & gives a regressor, but label.type is 'boolean'
streams.3.kafka.username = 'me' => streams.3.kafka & allowed here: missing, label, model, explain
$STREAMS__3__KAFKA__PASSWORD = SECRET => streams.3.kafka cannot be set for one stream
streams.3.features = {age = 'numeric'} => streams.3.features & allowed here
streams.3.seed = 3 => streams.3.seed is 3
streams.three.drift.delta = 0.1 => streams.three & number of a partition
streams.03.drift.delta = 0.1 => streams.03 & number of a partition
streams.10000.drift.delta = 0.1 => streams.10000 & 9999
streams.3 = 5 => streams.3 is 5
explain = {methods = ['ipfi'], groups.x = ['age']}; streams.3.explain.methods = ['ipfi', 'ipdp'] =>
  streams.3.explain.methods and explain.features explain age, but must explain only what & x, city

$EXPLAIN__ALHPA = 0.5 => alhpa is not a setting
$EXPLIAN__ALPHA = 0.5 => FLUXPLAIN_EXPLIAN__ALPHA is not a setting & EXPLAIN
$EXPLAIN__ALPHA = 2 => explain.alpha is '2'
$EXPLAIN__ALPHA = much => explain.alpha is 'much'
$EXPLAIN__ALPHA = [0.1, 2] => explain.alpha is '[0.1, 2]'
$EXPLAIN__ALPHA = [[[ => explain.alpha is '[[['
$EXPLAIN__ALPHA = [NaN] => explain.alpha is '[NaN]'

kafka.security_protocol = 'TLS' =>
  kafka.security_protocol is 'TLS' & 'PLAINTEXT', 'SSL', 'SASL_PLAINTEXT' or 'SASL_SSL'
SASL!; kafka.sasl_mechanism = 'GSSAPI'; $KAFKA__PASSWORD = SECRET =>
  kafka.sasl_mechanism is 'GSSAPI' & 'SCRAM-SHA-256', 'SCRAM-SHA-512' or 'OAUTHBEARER'
SASL! => kafka.password is missing & SASL_SSL & FLUXPLAIN_KAFKA__PASSWORD & password_file
SASL!; $KAFKA__PASSWORD =  => kafka.password cannot be used & at least 1
kafka.security_protocol = 'SASL_PLAINTEXT'; $KAFKA__PASSWORD = SECRET =>
  kafka.username is missing & SASL_PLAINTEXT
SASL!; kafka.username = ''; $KAFKA__PASSWORD = SECRET => kafka.username is '' & at least 1
SASL!; kafka.password_file = 'secret'; $KAFKA__PASSWORD = SECRET =>
  kafka.password_file is 'secret' & environment has password & only one
kafka.sasl_mechanism = 'PLAIN' =>
  kafka.sasl_mechanism is 'PLAIN' & 'PLAINTEXT' & SASL_PLAINTEXT or SASL_SSL
kafka.security_protocol = 'SSL'; kafka.username = 'ada' =>
  kafka.username is 'ada' & 'SSL' & SASL_PLAINTEXT or SASL_SSL
$KAFKA__PASSWORD = SECRET => kafka.password is set & 'PLAINTEXT' & SASL_SSL
kafka.password_file = 'secret' => kafka.password_file is 'secret' & 'PLAINTEXT'
SASL!; kafka.security_protocol = 'SASL_PLAINTEXT'; kafka.ca_file = 'secret' =>
  kafka.ca_file is 'secret' & 'SASL_PLAINTEXT' & SSL or SASL_SSL
kafka.client_cert_file = 'secret' =>
  kafka.client_cert_file is 'secret' & 'PLAINTEXT' & SSL or SASL_SSL
kafka.security_protocol = 'SSL'; kafka.client_key_file = 'secret' =>
  kafka.client_key_file is set & client_cert_file is missing
kafka.security_protocol = 'SSL'; $KAFKA__CLIENT_KEY_PASSWORD = SECRET =>
  kafka.client_key_password is set & client_cert_file is missing
SASL!; kafka.password_file = 'nowhere' =>
  kafka.password_file is 'nowhere' & cannot be read & No such file
SASL!; kafka.password_file = 'empty' => kafka.password_file is 'empty' & empty
SASL!; kafka.password_file = 'lines' => kafka.password_file is 'lines' & one line
SASL!; kafka.password_file = 'bytes' => kafka.password_file is 'bytes' & UTF-8
SASL!; kafka.password = "SECRET" =>
  kafka.password is a secret & FLUXPLAIN_KAFKA__PASSWORD & kafka.password_file
SASL!; kafka.client_key_password = "SECRET" =>
  kafka.client_key_password & FLUXPLAIN_KAFKA__CLIENT_KEY_PASSWORD & kafka.client_key_password_file
kafka.security_protocol = 'SSL'; kafka.ca_file = '.' =>
  kafka.ca_file is '.' & cannot be read & directory
kafka.security_protocol = 'SSL'; kafka.ca_file = 'secret' =>
  kafka.ca_file is 'secret' & no certificates in PEM
kafka.security_protocol = 'SSL'; kafka.client_cert_file = 'secret' =>
  kafka.client_cert_file is 'secret' & PEM
kafka.bootstrap_servers = 'embedded'; kafka.security_protocol = 'SSL' =>
  kafka.security_protocol is 'SSL' & 'embedded' & 'PLAINTEXT'
kafka.session_timeout_s = 5 => kafka.session_timeout_s is 5 & greater than or equal to 6
kafka.rebalance_timeout_s = 0 => kafka.rebalance_timeout_s is 0 & greater than or equal to 10
kafka.delivery_timeout_s = 30 => kafka.delivery_timeout_s is 30 & greater than or equal to 60

OAUTH! => kafka.token_url is missing & 'OAUTHBEARER'
OAUTH!; kafka.token_url = 'idp.example/token' => kafka.token_url must be https://host/path
OAUTH!; kafka.token_url = 'ftp://h/t' => kafka.token_url must be https://host/path
OAUTH!; kafka.token_url = "https://me:hush-7@h/t" => kafka.token_url & must not hold a username
OAUTH!; kafka.token_url = 'https://h/t'; kafka.token_scope = 'a  b' => kafka.token_scope is 'a  b'
OAUTH!; kafka.token_url = 'https://h/t'; kafka.token_extensions.auth = 'x' =>
  kafka.token_extensions has 'auth'
OAUTH!; kafka.token_url = 'https://h/t'; kafka.token_extensions.a_b = 'x' =>
  kafka.token_extensions.a_b & pattern
OAUTH!; kafka.token_url = 'https://h/t'; kafka.token_extensions.pool = 'a,b' =>
  kafka.token_extensions.pool is 'a,b' & pattern
OAUTH!; kafka.token_url = 'https://h/t'; kafka.token_ca_file = 'secret' =>
  kafka.token_ca_file is 'secret' & no certificates in PEM
SASL!; $KAFKA__PASSWORD = SECRET; kafka.token_url = 'https://h/t' =>
  kafka.token_url is set & 'SCRAM-SHA-512' & must be 'OAUTHBEARER'
kafka.token_url = 'https://h/t' => kafka.token_url is 'https://h/t' & 'PLAINTEXT'

kafka.client = 3 => kafka.client cannot be used & dictionary
$KAFKA__CLIENT = {"sasl.password": "SECRET" => the environment: error parsing & kafka
kafka.client = {"acks" = 1} => kafka.client.acks is 1 & must not be set here & without a hole
kafka.client.enable.idempotence = false =>
  kafka.client.enable.idempotence is false & must not be set here & without a hole
kafka.client.isolation.level = 'read_uncommitted' =>
  kafka.client.isolation.level is 'read_uncommitted' & aborted transactions
kafka.client = {"enable.auto.commit" = true} => kafka.client.enable.auto.commit & messages are done
kafka.client = {"group.id" = "x"} => kafka.client.group.id is 'x' & groups
kafka.client = {"metadata.broker.list" = "a:1"} =>
  kafka.client.metadata.broker.list is 'a:1' & kafka.bootstrap_servers
kafka.client = {"message.timeout.ms" = 1} =>
  kafka.client.message.timeout.ms is 1 & kafka.delivery_timeout_s
kafka.client = {"security.protocol" = "ssl"} =>
  kafka.client.security.protocol is 'ssl' & kafka.security_protocol
kafka.client = {"sasl.oauthbearer.client.secret" = "SECRET"} =>
  kafka.client.sasl.oauthbearer.client.secret is set & must not be set here & [kafka]
kafka.client = {"ssl.key.password" = "SECRET"} => kafka.client.ssl.key.password is set & [kafka]
$KAFKA__CLIENT__SASL__PASSWORD = SECRET => kafka.client.sasl.password is set & [kafka]
kafka.client = {"error_cb" = "json:loads"} => kafka.client.error_cb & calls librdkafka
kafka.client = {"plugin.library.paths" = "x.so"} => kafka.client.plugin.library.paths & load code
kafka.client = {"linger.ms" = [1]} => kafka.client.linger.ms must be a text, a number, true or false
kafka.client = {"linger.mss" = 5} =>
  kafka.client.linger.mss cannot be used & No such configuration property
kafka.client = {"sasI.password" = "SECRET"} =>
  kafka.client.sasI.password cannot be used & No such configuration property
kafka.client = {"socket.keepalive.enable" = "perhaps"} =>
  kafka.client.socket.keepalive.enable cannot be used & Expected bool value
kafka.client = {"linger.ms" = 1e9} => kafka.client & outside allowed range 0..900000
kafka.bootstrap_server = 'a:1' => did you mean bootstrap_servers? & username & password_file

registry.url = 'registry:8081' => registry.url must be https://host:port/path or http://
registry.url = 'https://h:99999' => registry.url must be https://
registry.url = 'https://a, https://b' => registry.url must be https://
registry.url = "https://h?key=SECRET" => registry.url must be https://
registry.url = "https://me:hush-7@h" => registry.url must not hold a username or password
registry.username = 'me' => registry.username is set, but url is missing
$REGISTRY__PASSWORD = SECRET => registry.password is set, but url is missing
registry.output = 'avro' => registry.output is 'avro', but url is missing
registry.url = 'https://h'; registry.username = 'me' => registry.password is missing
registry.url = 'https://h'; $REGISTRY__PASSWORD = SECRET => registry.username is missing
registry.url = 'https://h'; registry.password_file = 'secret'; $REGISTRY__PASSWORD = SECRET =>
  registry.password_file is 'secret' & only one
registry.url = 'https://h'; registry.username = 'me'; registry.password_file = '/nowhere' =>
  registry.password_file & cannot be read: No such
registry.url = 'https://h'; registry.ca_file = '/nowhere' =>
  registry.ca_file is '/nowhere' & No such file
registry.url = 'https://h'; registry.ca_file = 'secret' =>
  registry.ca_file is 'secret' & holds no certificates in PEM format

alerts.methods = ['shap'] => alerts.methods.0 is 'shap' & 'loss'
alerts.methods = [] => alerts.methods is [] & at least 1
alerts.kinds = ['drifts'] => alerts.kinds.0 is 'drifts' & 'cold-start'
alerts.features = ['nope'] => alerts.features has 'nope' & explained
alerts.mute.agee = "x" => alerts.mute & agee
alerts.secret = 'x' => alerts.secret is a secret & FLUXPLAIN_ALERTS__SECRET & alerts.secret_file
alerts.secret_file = 'nowhere' => alerts.secret_file is 'nowhere' & No such file
alerts.secret_file = 'secret'; $ALERTS__SECRET = SECRET => alerts.secret_file is 'secret' & only one
$ALERTS__SECRET = SECRET => alerts.secret has 12 characters & at least 16
alerts.urls = 'x' => alerts.urls is not a setting & url, format, page
alerts.url = 'ftp://a/b' => alerts.url must be http://host/path or https://host/path
alerts.url = 'hooks.example' => alerts.url must be http
alerts.url = 'http://' => alerts.url must be http
alerts.url = 'http://a:99999/' => alerts.url must be http
alerts.url = 'http://a b/' => alerts.url must be http
alerts.url = "ftp://user:SECRET@host/token" => alerts.url must be http
alerts.proxy = 'https://proxy:8080' => alerts.proxy must be http://host/path
"""
"""Settings => parts of the error; a long case goes on in the next line.

The bounds and choices that Pydantic checks are in the reference: ``tests/docs/test_reference.py``.
"""

CASES = [line.split(" => ") for line in WRONG.replace(" =>\n  ", " => ").splitlines() if line]


@pytest.mark.parametrize(("settings", "parts"), CASES, ids=[settings for settings, _ in CASES])
def test_a_wrong_setting_is_named_with_its_value_and_what_is_allowed(
    folder: Path, refused: Refused, settings: str, parts: str
) -> None:
    (folder / "secret").write_text(f"{SECRET}\n")
    (folder / "empty").write_text("\n")
    (folder / "lines").write_text(f"{SECRET}\n{SECRET}\n")
    (folder / "bytes").write_bytes(b"\xff\xfe")
    reason = refused(settings)
    assert all(part in reason for part in parts.split(" & ")), reason
    assert "\n" not in reason
    assert "hush" not in reason


@pytest.mark.parametrize("key", SHARED)
def test_what_streams_share_cannot_differ(refused: Refused, key: str) -> None:
    expected = f"streams.3.{key} must be the same for all streams"
    assert refused(f"streams.3.{key} = 1").startswith(expected)


def test_every_wrong_setting_has_a_line(refused: Refused) -> None:
    def keys(settings: str) -> list[str]:
        return [line.split()[0] for line in refused(settings).splitlines()]

    wrong = "explain.alpha = 7; drift.delta = 7; drift.x = 1"
    assert keys(wrong) == ["explain.alpha", "drift.delta", "drift.x"]
    assert keys(
        "streams.1.explain.alpha = 5; streams.1.explain.emit_every = 0; streams.2.kafka.x = 'me'"
    ) == ["streams.1.explain.alpha", "streams.1.explain.emit_every", "streams.2.kafka"]


@pytest.mark.parametrize(
    "line", [f"password = {SECRET}", f"kafka = {{password = {SECRET}}}", f'"{SECRET}']
)
def test_a_line_that_is_not_toml_is_not_shown_if_it_may_hold_a_secret(
    folder: Path, line: str
) -> None:
    (folder / "wrong.toml").write_text(f"[kafka]\n{line}\n")
    with pytest.raises(ConfigError, match="is not TOML") as caught:
        load_config(folder / "wrong.toml")
    assert SECRET not in str(caught.value)


def test_secrets_are_not_among_the_keys_of_a_file(refused: Refused) -> None:
    assert " password," not in refused("kafka.bootstrap_server = 'a:1'")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, r"cannot read .*fluxplain\.toml"),
        (b"\xff\xfe", "not UTF-8"),
        (b"seed = ", "not TOML"),
        (b"", "features is missing\nmodel is missing"),
        (SMALLEST["features"].encode() + b"\n[model]", "model.factory and file are both missing"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    folder: Path, content: bytes | None, reason: str
) -> None:
    path = folder / "fluxplain.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason):
        load_config(path)
