// An OpenID provider for tests: oidc-provider with its own pages for login and consent.
// It prints its issuer when it listens, and ends with its standard input. A line there sets
// the groups of somebody, and is printed when that is done: {"login": "ann", "groups": ["x"]}.
import { createSign, createVerify, generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { default: Provider } = await import(pathToFileURL(join(process.env.MODULES, "oidc-provider/lib/index.js")));
const hub = process.env.HUB;
const server = createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
const exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
const groups = new Map();
const types = "urn:ietf:params:oauth:token-type:";
const provider = new Provider(issuer, {
  jwks: { keys: [{ ...keys.privateKey.export({ format: "jwk" }), kid: "1", use: "sig", alg: "RS256" }] },
  clients: [{
    client_id: process.env.CLIENT_ID, client_secret: process.env.CLIENT_SECRET,
    redirect_uris: [`${hub}/signin/callback`], post_logout_redirect_uris: [`${hub}/`],
    response_types: ["code"], grant_types: ["authorization_code", "refresh_token", exchange],
    backchannel_logout_uri: `${hub}/signin/ended/real`, backchannel_logout_session_required: true,
  }],
  claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
  scopes: ["openid", "offline_access", "profile", "email", "groups"],
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: `Person ${id}`, email: `${id}@example.com`, email_verified: true, groups: groups.get(id) ?? ["hub-users"] }),
  }),
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true }, backchannelLogout: { enabled: true } },
  fetch: (url, { dispatcher, ...options }) => fetch(url, options), // the hub is on this machine
  pkce: { required: () => true },
  cookies: { keys: ["a key of a test"] },
});

// encode and sign make a token; accountOf tells whose a subject token is.
const encode = (part) => Buffer.from(JSON.stringify(part)).toString("base64url");
const sign = (header, claims) => {
  const text = `${encode({ alg: "RS256", kid: "1", ...header })}.${encode(claims)}`;
  return `${text}.${createSign("RSA-SHA256").update(text).sign(keys.privateKey, "base64url")}`;
};
const accountOf = async ({ subject_token: token, subject_token_type: type }, client) => {
  if (type === `${types}id_token`) {
    const [header, body, signature] = token.split(".");
    const claims = JSON.parse(Buffer.from(body, "base64url"));
    const good = createVerify("RSA-SHA256").update(`${header}.${body}`).verify(keys.publicKey, signature, "base64url");
    return good && claims.aud === client.clientId && claims.exp > Date.now() / 1000 ? claims.sub : undefined;
  }
  const found = await (type === `${types}refresh_token` ? provider.RefreshToken : provider.AccessToken).find(token);
  return found?.isValid && found.clientId === client.clientId ? found.accountId : undefined;
};

// Token exchange (RFC 8693), for access tokens and identity assertion grants (ID-JAG).
provider.registerGrantType(exchange, async (ctx) => {
  const { params, client } = ctx.oidc;
  const sub = await accountOf(params, client);
  if (!sub) {
    ctx.status = 400;
    ctx.body = { error: "invalid_request", error_description: "the subject token is not good" };
    return;
  }
  const now = Math.floor(Date.now() / 1000);
  const asserts = params.requested_token_type === `${types}id-jag`;
  const { audience, resource, scope } = params;
  ctx.body = {
    access_token: sign({ typ: asserts ? "oauth-id-jag+jwt" : "at+jwt" }, {
      iss: issuer, sub, aud: audience ?? resource, client_id: client.clientId, jti: randomUUID(), iat: now, exp: now + 300, resource, scope,
    }),
    issued_token_type: asserts ? params.requested_token_type : `${types}access_token`,
    token_type: asserts ? "N_A" : "Bearer", expires_in: 300, scope,
  };
}, ["audience", "resource", "scope", "requested_token_type", "subject_token", "subject_token_type"]);
provider.on("backchannel.error", (_, err) => console.error(err));
server.on("request", provider.callback());
createInterface({ input: process.stdin }).on("line", (line) => {
  const change = JSON.parse(line);
  groups.set(change.login, change.groups);
  console.log(line);
}).on("close", () => process.exit(0));
console.log(issuer);
