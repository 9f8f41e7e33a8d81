import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Setting;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.IndexService;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.painless.PainlessPlugin;
import org.opensearch.plugins.Plugin;
import org.opensearch.transport.Netty4Plugin;

/**
 * One node of OpenSearch with the modules that Webdepot needs, from the jars of a Maven repository:
 * the distribution itself is not in one.
 *
 * Arguments: settings, each as NAME=VALUE. The node runs until it receives a signal or, with
 * -Dwebdepot.until-input-ends=true, until the standard input ends, so that it does not outlive the
 * process that started it.
 */
public final class Launcher extends Node {
    private static final List<Class<? extends Plugin>> MODULES =
        List.of(Netty4Plugin.class, CommonAnalysisPlugin.class, PainlessPlugin.class, PrivateSettings.class);

    /** Settings that only tests need: how long copies of a shard keep what was deleted. */
    public static final class PrivateSettings extends Plugin {
        @Override
        public List<Setting<?>> getSettings() {
            return List.of(IndexService.RETENTION_LEASE_SYNC_INTERVAL_SETTING);
        }
    }

    private Launcher(Environment environment) {
        super(environment, MODULES, false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder();
        for (String argument : arguments) {
            String[] parts = argument.split("=", 2);
            String[] values = parts[1].split(",");
            if (values.length > 1) {
                settings.putList(parts[0], Arrays.asList(values));
            } else {
                settings.put(parts[0], parts[1]);
            }
        }
        Path home = Path.of(settings.get("path.home"));
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            settings.build(), Map.of(), home.resolve("config"), () -> "node");
        Launcher node = new Launcher(environment);
        node.start();
        if (!Boolean.getBoolean("webdepot.until-input-ends")) {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node)));
            Thread.currentThread().join();
        }
        while (System.in.read() >= 0) {
        }
        Runtime.getRuntime().halt(0);
    }

    private static void close(Node node) {
        try {
            node.close();
        } catch (java.io.IOException error) {
            error.printStackTrace();
        }
    }
}
