import { Component, type ReactNode } from "react";
import { Button, Empty, Page } from "~/ui";

/** A page that broke does not take the others with it; another address is tried anew. */
export class Boundary extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError() {
    return { broken: true };
  }

  override componentDidMount() {
    window.addEventListener("popstate", this.mend);
    window.addEventListener("pushState", this.mend);
  }

  override componentWillUnmount() {
    window.removeEventListener("popstate", this.mend);
    window.removeEventListener("pushState", this.mend);
  }

  private readonly mend = () => this.setState({ broken: false });

  override render() {
    if (!this.state.broken) return this.props.children;
    return (
      <Page title="This page broke">
        <Empty title="Something is wrong with the dashboard, not with your messages.">
          After an update of the service the page has to be loaded once more. If it breaks again, its cause is
          in the browser's console.
        </Empty>
        <p>
          <Button icon="operations" look="primary" onClick={() => window.location.reload()}>
            Load it again
          </Button>
        </p>
      </Page>
    );
  }
}
