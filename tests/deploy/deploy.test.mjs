// The files in deploy/ name flags, variables, ports and paths: they must exist, in the binary and in this repository.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { parse, parseAllDocuments } from 'yaml';

import { Hotspan, program } from '../clients/lib/hotspan.mjs';
import { root } from '../clients/lib/project.mjs';

const read = (path) => readFileSync(join(root, path), 'utf8');
const compose = parse(read('deploy/docker-compose.yaml'));
const kubernetes = parseAllDocuments(read('deploy/kubernetes/hotspan.yaml')).map((document) => {
  assert.deepEqual(document.errors, []);
  return document.toJS();
});
const kind = (name) => kubernetes.find((object) => object.kind === name);

function hotspan(...args) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', env: { PATH: process.env.PATH } });
  return { status, text: stdout + stderr };
}

// Scenario: every variable that a file sets for Hotspan. Guarantee: the binary knows it and takes its value.
test('variables exist and their values are right', () => {
  const set = {};
  for (const [, name, value] of read('deploy/Dockerfile').matchAll(/\b(HOTSPAN_\w+)=(\S+)/g)) set[name] = value;
  for (const [, name, value] of read('deploy/systemd/hotspan.service').matchAll(/^Environment=(\w+)=(.+)$/gm)) set[name] = value;
  Object.assign(set, compose.services.hotspan.environment);
  assert.ok(Object.keys(set).length >= 5);
  const shown = spawnSync(program, ['config', 'show', '--json'], { encoding: 'utf8', env: { PATH: process.env.PATH, ...set } });
  assert.equal(shown.status, 0, shown.stderr);
  for (const name of Object.keys(set)) assert.ok(shown.stdout.includes(`"${name}"`), `${name} sets nothing:\n${shown.stdout}`);
});

// Scenario: every command line of Hotspan in the files. Guarantee: the command and its flags exist.
test('command lines are understood', () => {
  const inUnit = read('deploy/systemd/hotspan.service').match(/^ExecStart=\S+\/hotspan (.+)$/m)[1].split(' ');
  const inImage = JSON.parse(read('deploy/Dockerfile').match(/^CMD (.+)$/m)[1]);
  const inPod = kind('StatefulSet').spec.template.spec.containers[0].args;
  for (const args of [inUnit, inImage, inPod]) {
    const { status, text } = hotspan(...args, '--help');
    assert.equal(status, 0, `hotspan ${args.join(' ')}: ${text}`);
  }
});

// Scenario: the configuration inside the Kubernetes manifest. Guarantee: `hotspan config check` finds it in order, and its
// ports are those of the container, the service and the probes.
test('the ConfigMap holds a right configuration', () => {
  const toml = kind('ConfigMap').data['hotspan.toml'];
  const file = join(mkdtempSync(join(tmpdir(), 'hotspan-deploy-')), 'hotspan.toml');
  writeFileSync(file, toml);
  const { status, text } = hotspan('config', 'check', file);
  assert.equal(status, 0, text);
  const configured = [...toml.matchAll(/"(?:.*):(\d+)"/g)].map(([, port]) => Number(port)).sort();
  const pod = kind('StatefulSet').spec.template.spec;
  assert.deepEqual(pod.containers[0].ports.map((port) => port.containerPort).sort(), configured);
  assert.deepEqual(kind('Service').spec.ports.map((port) => port.port).sort(), configured);
  const grace = Number(toml.match(/shutdown_grace = "(\d+)s"/)[1]);
  assert.ok(grace < pod.terminationGracePeriodSeconds);
  const names = new Set(pod.containers[0].ports.map((port) => port.name));
  for (const port of kind('Service').spec.ports) assert.ok(names.has(port.targetPort));
});

// Scenario: the probes of the manifest against a running server. Guarantee: they answer.
test('probes answer', async () => {
  const server = await Hotspan.start();
  const { readinessProbe, livenessProbe } = kind('StatefulSet').spec.template.spec.containers[0];
  for (const { httpGet } of [readinessProbe, livenessProbe]) {
    assert.equal((await fetch(server.url + httpGet.path)).status, 200, httpGet.path);
  }
  await server.stop();
});

// Scenario: every path that a Dockerfile copies and that Compose builds from or mounts. Guarantee: it is there, and named
// volumes and services that others depend on are defined.
test('paths and names exist', () => {
  for (const file of ['deploy/Dockerfile', 'examples/go/Dockerfile', 'examples/collector/Dockerfile']) {
    const context = file.startsWith('deploy') ? root : join(root, dirname(file));
    for (const [, sources] of read(file).matchAll(/^COPY (?!--)(.+) \S+$/gm)) {
      for (const source of sources.split(' ').filter((source) => !source.includes('*'))) {
        assert.ok(existsSync(join(context, source)), `${file}: there is no ${source}`);
      }
    }
  }
  const inDeploy = (path) => join(root, 'deploy', path);
  for (const [name, service] of Object.entries(compose.services)) {
    const context = inDeploy(service.build.context ?? service.build);
    assert.ok(existsSync(join(context, service.build.dockerfile ?? 'Dockerfile')), `${name} has no Dockerfile`);
    for (const volume of service.volumes ?? []) {
      const [source] = volume.split(':');
      assert.ok(source.startsWith('.') ? existsSync(inDeploy(source)) : source in compose.volumes, `${name}: ${volume}`);
    }
    for (const other of service.depends_on ?? []) assert.ok(other in compose.services, `${name} depends on ${other}`);
  }
  // Host and port of each address that one container has of another.
  const addresses = read('deploy/docker-compose.yaml').matchAll(/(?:\/\/|: )(hotspan|collector):(\d+)$/gm);
  const ports = { hotspan: [4040, 4317, 4318, 3200], collector: [4317, 4318, 4327] };
  for (const [, host, port] of addresses) assert.ok(ports[host].includes(Number(port)), `${host}:${port}`);
});

// Scenario: the unit file. Guarantee: systemd finds nothing wrong in it, where systemd is at hand.
test('the unit is in order', { skip: spawnSync('which', ['systemd-analyze']).status !== 0 && 'there is no systemd here' }, () => {
  const unit = read('deploy/systemd/hotspan.service').replaceAll('/usr/local/bin/hotspan', program);
  const file = join(mkdtempSync(join(tmpdir(), 'hotspan-deploy-')), 'hotspan.service');
  writeFileSync(file, unit);
  const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
  const ours = stderr.split('\n').filter((line) => line.includes('hotspan.service'));
  assert.deepEqual(ours, []);
});
