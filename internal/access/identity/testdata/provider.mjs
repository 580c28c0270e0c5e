// An OpenID provider for tests: oidc-provider with its own pages for login and consent.
// It prints its issuer when it listens, and ends with its standard input.
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { default: Provider } = await import(pathToFileURL(join(process.env.MODULES, "oidc-provider/lib/index.js")));
const hub = process.env.HUB;
const server = createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{
    client_id: process.env.CLIENT_ID, client_secret: process.env.CLIENT_SECRET,
    redirect_uris: [`${hub}/signin/callback`], post_logout_redirect_uris: [`${hub}/`],
    response_types: ["code"], grant_types: ["authorization_code", "refresh_token"],
    backchannel_logout_uri: `${hub}/signin/ended/real`, backchannel_logout_session_required: true,
  }],
  claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
  scopes: ["openid", "offline_access", "profile", "email", "groups"],
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, name: `Person ${id}`, email: `${id}@example.com`, email_verified: true, groups: ["hub-users"] }),
  }),
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true }, backchannelLogout: { enabled: true } },
  fetch: (url, { dispatcher, ...options }) => fetch(url, options), // the hub is on this machine
  pkce: { required: () => true },
  cookies: { keys: ["a key of a test"] },
});
provider.on("backchannel.error", (_, err) => console.error(err));
server.on("request", provider.callback());
process.stdin.resume().on("end", () => process.exit(0));
console.log(issuer);
