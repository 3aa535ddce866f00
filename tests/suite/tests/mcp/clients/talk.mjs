// Two agents on one worktree, through the client of the TypeScript SDK: one works, the other
// waits for it, works, loses the lock, is refused, and has a person agree to a restore.
//
//     node talk.mjs REVISION JVS-MCP JVS
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import assert from 'node:assert/strict';

const [revision, server, jvs] = process.argv.slice(2);
// Installed elsewhere: MCP_CLIENTS is the directory of node_modules.
const require = createRequire(`${process.env.MCP_CLIENTS}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const { MCP_CLIENTS: _, ...env } = process.env;
const rival = (...words) =>
    execFileSync(jvs, words, { env: { ...env, JVS_SESSION_ID: 'rival' }, stdio: 'pipe' });
const asked = [];

async function agent(name) {
    const mode = revision === '2025-11-25' ? 'legacy' : { pin: revision };
    const client = new Client(
        { name, version: '1' },
        { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
    );
    client.setRequestHandler('elicitation/create', async (request) => {
        asked.push(request.params.message);
        return { action: 'accept', content: { confirm: true } };
    });
    await client.connect(new StdioClientTransport({ command: server, env, stderr: 'inherit' }));
    // What the answers promise is checked by the client against what the list has.
    const { tools } = await client.listTools();
    assert(tools.length > 8);
    return client;
}

async function call(client, name, args, options) {
    const result = await client.callTool({ name, arguments: args }, options);
    const said = JSON.parse(result.content[0].text);
    console.log(`${name}: ${result.isError ? said.error.code : 'done'}`);
    return result.isError ? said : result.structuredContent;
}

const first = await agent('first');
const second = await agent('second');
const { handle } = await call(first, 'acquire', { note: 'the first one' });
const conflict = await call(second, 'acquire', {});
assert.equal(conflict.error.code, 'E_LOCK_CONFLICT');
const told = [];
const waits = call(second, 'acquire', { wait: '5m' }, {
    timeout: 120_000,
    onprogress: (progress) => told.push(progress.message),
});
while (told.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
assert.match(told[0], /^main is locked by .*mcp:/);
const kept = await call(first, 'snapshot', { handle, note: 'of the first one' });
await call(first, 'release', { handle });
const granted = await waits;
await call(second, 'snapshot', { handle: granted.handle, note: 'of the second one' });
rival('lock', 'reclaim', '--reason', 'the test takes it away');
for (const name of ['snapshot', 'release']) {
    const lost = await call(second, name, { handle: granted.handle });
    assert.equal(lost.error.code, 'E_FENCING_MISMATCH');
}
rival('lock', 'release');
const again = await call(second, 'acquire', {});
const restored = await call(second, 'restore', {
    handle: again.handle,
    snapshot: kept.snapshot_id,
    reason: 'it was better',
});
assert.equal(restored.snapshot_id, kept.snapshot_id);
assert.equal(asked.length, 1);
const read = await first.readResource({ uri: 'jvs://worktrees/main/history' });
assert.equal(JSON.parse(read.contents[0].text).snapshots.length, 2);
await first.close();
await second.close();
console.log('finished');
