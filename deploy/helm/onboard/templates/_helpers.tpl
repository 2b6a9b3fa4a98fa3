{{/* The image with its digest or tag. */}}
{{- define "onboard.image" -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" .Values.image.repository .Values.image.digest | quote }}
{{- else -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
{{- end -}}
{{- end }}

{{/* Labels of every object. */}}
{{- define "onboard.labels" -}}
app.kubernetes.io/name: onboard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Labels of the pods of one component, by which they are selected: dict "root" $ "component" NAME. */}}
{{- define "onboard.selector" -}}
app.kubernetes.io/name: onboard
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "onboard.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{/* The part of a pod that all components share. */}}
{{- define "onboard.pod" -}}
serviceAccountName: {{ include "onboard.serviceAccountName" . }}
automountServiceAccountToken: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* The part of a container that all components share. */}}
{{- define "onboard.container" -}}
image: {{ include "onboard.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - configMapRef: {name: {{ .Release.Name }}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: secrets, mountPath: /run/secrets, readOnly: true}
  - {name: home, mountPath: /var/lib/onboard}
  - {name: tmp, mountPath: /tmp}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* The volumes of a pod: dict "root" $ "home" SIZE. */}}
{{- define "onboard.volumes" -}}
- name: secrets
  secret: {secretName: {{ .root.Values.secret }}, defaultMode: 0440}
- name: home
  emptyDir: {sizeLimit: {{ .home }}}
- name: tmp
  emptyDir: {medium: Memory, sizeLimit: 256Mi}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* torch would count the cores of the node: the name of the container. */}}
{{- define "onboard.threads" -}}
- name: OMP_NUM_THREADS
  valueFrom:
    resourceFieldRef: {containerName: {{ . }}, resource: limits.cpu}
{{- end }}

{{/* A worker's pod template: dict "root" $ "component" NAME "queue" QUEUE "device" DEVICE "resources" RESOURCES
     "nodeSelector" … "tolerations" … "affinity" …, and "once" true for a worker that exits when it has no work. */}}
{{- define "onboard.worker" -}}
metadata:
  labels:
    {{- include "onboard.selector" . | nindent 4 }}
    onboard/metrics: "true"
  annotations:
    checksum/settings: {{ include "onboard.settings" .root | sha256sum }}
    {{- if not .root.Values.serviceMonitor.enabled }}
    prometheus.io/scrape: "true"
    prometheus.io/port: "9100"
    {{- end }}
    {{- if .once }}
    # autoscalers of nodes wait until it exits
    cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
    karpenter.sh/do-not-disrupt: "true"
    {{- end }}
spec:
  {{- include "onboard.pod" .root | nindent 2 }}
  terminationGracePeriodSeconds: {{ .root.Values.workers.terminationGraceSeconds }}
  {{- if .once }}
  restartPolicy: Never
  {{- end }}
  {{- with .nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: worker
      {{- include "onboard.container" .root | nindent 6 }}
      args:
        - worker
        - --queue={{ .queue }}
        - --device={{ .device }}
        {{- if .once }}
        - --idle-exit=60
        {{- end }}
        - --alive-file=/tmp/alive
        - --metrics-host=0.0.0.0
        - --metrics-port=9100
      env:
        {{- include "onboard.threads" "worker" | nindent 8 }}
      ports:
        - {name: metrics, containerPort: 9100}
      resources:
        {{- toYaml .resources | nindent 8 }}
      startupProbe:
        exec:
          command: [sh, -c, 'test -n "$(find /tmp/alive -mmin -1)"']
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 36
      livenessProbe:
        exec:
          command: [sh, -c, 'test -n "$(find /tmp/alive -mmin -1)"']
        periodSeconds: 30
        timeoutSeconds: 5
        failureThreshold: 3
  volumes:
    {{- include "onboard.volumes" (dict "root" .root "home" "1Gi") | nindent 4 }}
{{- end }}

{{/* What KEDA counts: jobs that run, and jobs that wait in a queue that is not paused. dict "root" $ "queue" QUEUE.
     The length of the Redis list would be 0 while jobs run. */}}
{{- define "onboard.trigger" -}}
- type: postgresql
  metadata:
    query: >-
      SELECT count(*) FROM jobs WHERE queue = '{{ .queue }}'
      AND (state = 'running' OR (state = 'queued'
      AND NOT EXISTS (SELECT 1 FROM queues WHERE queues.name = jobs.queue AND queues.paused)))
    targetQueryValue: "1"
    activationTargetQueryValue: "0"
  authenticationRef: {name: {{ .root.Release.Name }}-database}
{{- end }}

{{/* A budget for one Deployment: dict "root" $ "component" NAME "rule" RULE. */}}
{{- define "onboard.disruption" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .root.Release.Name }}-{{ .component }}
  labels:
    {{- include "onboard.labels" .root | nindent 4 }}
spec:
  {{ .rule }}
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "onboard.selector" . | nindent 6 }}
{{- end }}

{{/* What all processes share, except for the Secret. */}}
{{- define "onboard.settings" -}}
{{- $hosts := prepend .Values.api.allowedHosts (printf "%s-api" .Release.Name) }}
{{- if .Values.ingress.enabled }}
{{- $hosts = append $hosts .Values.ingress.host }}
{{- end }}
ONBOARD_ALLOWED_HOSTS: {{ join " " $hosts | quote }}
ONBOARD_TRUSTED_PROXIES: {{ join " " .Values.api.trustedProxies | quote }}
{{- range $name, $value := .Values.settings }}
{{- if $value }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}
